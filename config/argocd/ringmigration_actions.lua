-- Which actions Argo CD offers for a RingMigration: those that its operator would accept now.
local status = obj.status or {}
local phase = status.phase or ""
local held = {}
for _, hold in ipairs(status.holds or {}) do
  held[hold.type] = true
end
local back = false
for _, condition in ipairs(status.conditions or {}) do
  back = back or condition.type == "RollbackAvailable" and condition.status == "True"
end

local seen = status.token ~= nil
local offered = {
  approve = held.AwaitingApproval == true,
  reject = held.AwaitingApproval == true,
  pause = status.paused == nil and phase ~= "" and phase ~= "Retiring" and phase ~= "Succeeded",
  resume = status.paused ~= nil,
  rollback = back,
  retry = phase == "RolledBack" and obj.spec.direction ~= "Backward",
  skip = status.stepPhase == "Soaking" or status.stepPhase == "AwaitingApproval",
}
local actions = {}
for name, offer in pairs(offered) do
  actions[name] = { disabled = not (seen and offer) }
end
return actions
