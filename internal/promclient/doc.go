// SPDX-License-Identifier: Apache-2.0

// Package promclient asks Prometheus servers whose addresses come from resources that many may write.
//
// What it guarantees:
//
//   - no address of this host or link is asked, through no proxy, and no redirect is followed;
//   - an answer has a limit in bytes and in time, and a server that fails is asked less and less often;
//   - credentials go to one address only, are not kept, and are in no error.
package promclient
