// SPDX-License-Identifier: Apache-2.0

// Package nginxconf writes a ring as an upstream block of NGINX, for those who have NGINX route by it, and tells NGINX when the
// block has changed.
//
// NGINX places keys as rings of V1 do, by what stands behind "server" in its configuration. So a ring is written only where
// NGINX sends every key to the backend that owns it; any other is refused, and the file stays as it is. The one thing in which
// NGINX cannot follow is a split: while one runs it stays on the stable ring, and the warnings say so.
package nginxconf
