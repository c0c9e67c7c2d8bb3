// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"bytes"
	"os"
	"strings"
)

// findSubPathMounts returns the paths at or below dir that a container has mounted with subPath, on Linux; elsewhere none.
func findSubPathMounts(dir string) []string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil // Without the table there is nothing to warn of.
	}
	return subPathMounts(mounts, dir)
}

// subPathMounts finds them in the text of mountinfo, whose fourth field is what of a file system is mounted and whose
// fifth is where. Kubelet's volumes are mounted whole; one that is mounted with subPath shows the directory, named ".."
// and a time, that was current when the container started, and stays with it.
func subPathMounts(mountinfo []byte, dir string) []string {
	var found []string
	for line := range bytes.Lines(mountinfo) {
		fields := strings.Fields(string(line))
		if len(fields) < 5 {
			continue
		}
		root, at := unescapeMount(fields[3]), unescapeMount(fields[4])
		if (at == dir || strings.HasPrefix(at, dir+"/")) && strings.Contains(root, "/..2") {
			found = append(found, at)
		}
	}
	return found
}

// unescapeMount undoes the octal escapes in which mountinfo writes the characters that separate its fields.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace
