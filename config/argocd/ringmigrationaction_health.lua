-- Health of a ringwright.dev RingMigrationAction for Argo CD: what became of it.
local status = obj.status or {}
if status.phase == "Accepted" then
  return { status = "Healthy", message = "Accepted" }
end
if status.phase == "Rejected" then
  return { status = "Degraded", message = (status.reason or "Rejected") .. ": " .. (status.message or "") }
end
return { status = "Progressing", message = "the operator has not decided yet" }
