// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/ringwright/ringwright/api/v1alpha1"

// JudgeSince returns what [Asked.Judge] does where it is enough that a consumer has a routing file from a generation on: those after it
// differ in addresses and in who is down.
func (a Asked) JudgeSince(leaderEpoch, generation int64, c Consumer) (v1alpha1.StaleReason, string) {
	if said := c.Said; said != nil && said.LeaderEpoch <= a.LeaderEpoch && (said.LeaderEpoch > leaderEpoch || said.LeaderEpoch == leaderEpoch && said.Generation >= generation) &&
		(said.LeaderEpoch < a.LeaderEpoch || said.Generation < a.Generation) {
		a.LeaderEpoch, a.Generation = said.LeaderEpoch, said.Generation
	}
	return a.Judge(c)
}
