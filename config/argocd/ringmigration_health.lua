-- Health of a ringwright.dev RingMigration for Argo CD. README.md beside this file says how it is installed.
--
-- Suspended is one that only a person lets go on: holds that may end by themselves are Progressing. One that has nothing to
-- migrate, as in a cluster that is built anew from Git, is Healthy, so that sync waves behind it are not kept waiting.
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
if generation ~= nil and observed ~= generation or conditions.Succeeded == nil then
  return { status = "Progressing", message = "the operator has not looked at this generation yet" }
end
if holds("Succeeded") then
  return health("Healthy", conditions.Succeeded)
end
if holds("Stalled") then
  return health("Degraded", conditions.Stalled)
end
if status.phase == "RollingBack" then
  return health("Progressing", conditions.Progressing)
end
if conditions.Accepted ~= nil and conditions.Accepted.status == "False" then
  return health("Degraded", conditions.Accepted)
end

local byPeople = {
  AwaitingApproval = true, ForeignSplit = true, Limited = true, Paused = true, PlanDrift = true, Suspended = true,
}
local count, idle = 0, false
for _, hold in ipairs(status.holds or {}) do
  count = count + 1
  if byPeople[hold.type] then
    return health("Suspended", conditions.Held)
  end
  idle = hold.type == "NoCandidate"
end
if status.phase == "Pending" and count == 1 and idle then
  return { status = "Healthy", message = "there is nothing to migrate: " .. conditions.Held.message }
end
return health("Progressing", conditions.Progressing)
