-- Health of a ringwright.dev HashRing for Argo CD. README.md beside this file says how it is installed.
--
-- It says what kstatus says, but for rings that are pinned: kstatus takes them for current, and Argo CD has the word Suspended
-- for them. One whose candidate waits is Healthy: sync waves wait for that, and the RingMigration may be in the next one.
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
  return { status = "Progressing", message = "the operator has not looked at this generation yet" }
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
if holds("Held") and conditions.Held.reason == "Pinned" then
  return health("Suspended", conditions.Ready)
end
local healthy = health("Healthy", conditions.Ready)
if holds("Held") then
  healthy.message = healthy.message .. "; " .. conditions.Held.reason .. ": " .. conditions.Held.message
end
return healthy
