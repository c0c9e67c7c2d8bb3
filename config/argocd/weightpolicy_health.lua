-- Health of a ringwright.dev WeightPolicy for Argo CD. README.md beside this file says how it is installed.
--
-- It says what kstatus says, but for policies that are suspended or pinned: kstatus takes them for current, and Argo CD has the word
-- Suspended for them. One in shadow, and one whose weights cannot help, is Healthy: it does what it was told to.
local status = obj.status or {}
local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end

local function holds(kind)
  return conditions[kind] ~= nil and conditions[kind].status == "True"
end

local function health(code, condition)
  return { status = code, message = condition.reason .. ": " .. condition.message }
end

local generation = obj.metadata.generation
local observed = status.observedGeneration or -1
if generation ~= nil and observed ~= generation or conditions.Ready == nil then
  return { status = "Progressing", message = "the balancer has not looked at this generation yet" }
end
if holds("Reconciling") then
  return health("Progressing", conditions.Reconciling)
end
if holds("Stalled") then
  return health("Degraded", conditions.Stalled)
end
if not holds("Ready") then
  return health("Progressing", conditions.Ready)
end
local reason = conditions.Ready.reason
if reason == "Suspended" or reason == "Pinned" then
  return health("Suspended", conditions.Ready)
end
local healthy = health("Healthy", conditions.Ready)
for _, kind in ipairs({ "Reporting", "Effective" }) do
  if conditions[kind] ~= nil and conditions[kind].status == "False" then
    healthy.message = healthy.message .. "; " .. conditions[kind].reason .. ": " .. conditions[kind].message
  end
end
return healthy
