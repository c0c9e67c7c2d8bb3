-- Asks a RingMigration for something, with a RingMigrationAction that Argo CD creates. It reaches the step that is shown, and no other.
--
-- The actor is who creates it, and that is Argo CD: change it here where its server has another account. Who pressed the button is in
-- Argo CD's own log only.
local os = require("os")
local actor = "system:serviceaccount:argocd:argocd-server"
local kind, name = "KIND", "NAME"

local summary = obj.status.summary or {}
local action = {
  apiVersion = obj.apiVersion,
  kind = "RingMigrationAction",
  metadata = {
    namespace = obj.metadata.namespace,
    name = obj.metadata.name .. "-" .. name .. "-" .. os.date("!%Y%m%d%H%M%S"),
  },
  spec = {
    migrationRef = { name = obj.metadata.name },
    type = kind,
    step = { token = obj.status.token, name = summary.stage },
    actor = { username = actor },
    reason = "given in Argo CD",
  },
}
return { { operation = "create", resource = action } }
