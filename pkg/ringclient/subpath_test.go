// SPDX-License-Identifier: Apache-2.0

package ringclient_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringwright/ringwright/pkg/ringclient"
)

func TestSubPathMounts(t *testing.T) {
	const mounts = `
1 0 253:1 / / rw,relatime - overlay overlay rw
2 1 253:1 /var/lib/kubelet/pods/p/volumes/kubernetes.io~configmap/whole /etc/whole ro - ext4 /dev/sda rw
3 1 253:1 /var/lib/kubelet/pods/p/volumes/kubernetes.io~configmap/ring/..2026_01_31_12_00_00.1/routing.json /etc/ring/routing.json ro - ext4 /dev/sda rw
4 1 0:99 /..2026_01_31_12_00_00.2/sub /etc/spaced\040dir ro - tmpfs tmpfs rw
5 1
`
	for dir, want := range map[string][]string{
		"/etc/whole":      nil,
		"/etc/ring":       {"/etc/ring/routing.json"},
		"/etc/rin":        nil,
		"/etc/spaced dir": {"/etc/spaced dir"},
		"/etc":            {"/etc/ring/routing.json", "/etc/spaced dir"},
	} {
		if diff := cmp.Diff(want, ringclient.SubPathMounts([]byte(mounts), dir)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", dir, diff)
		}
	}
}
