// SPDX-License-Identifier: Apache-2.0

package orcareport

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// cpu reads the CPU time of the container, where it has a limit, or of the process.
type cpu struct {
	// stat and limit are the files of the cgroup; "" where there is none with a limit.
	stat, limit string
}

// newCPU looks for the cgroup of this process in a root directory.
func newCPU(root string) *cpu {
	mount := filepath.Join(root, "sys/fs/cgroup")
	own, _ := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	candidates := []string{mount}
	for line := range strings.Lines(string(own)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok && !strings.Contains(path, "..") {
			// A container with a namespace of its own sees itself at the mount point, and so does one whose part alone is mounted.
			candidates = []string{filepath.Join(mount, path), mount}
		}
	}
	for _, dir := range candidates {
		c := &cpu{filepath.Join(dir, "cpu.stat"), filepath.Join(dir, "cpu.max")}
		if _, ok := c.usage(); !ok {
			continue
		}
		if _, err := os.Stat(c.limit); err == nil { // The root of all cgroups, which has the CPU of the whole machine, has no such file.
			return c
		}
	}
	return &cpu{}
}

// read returns the CPU time, and how many cores can be used. The limit can change while a program runs.
func (c *cpu) read() (time.Duration, float64, bool) {
	if cores, ok := c.cores(); ok {
		used, ok := c.usage()
		return used, cores, ok
	}
	used, ok := processCPU()
	return used, float64(runtime.GOMAXPROCS(0)), ok
}

// usage returns the CPU time of the cgroup.
func (c *cpu) usage() (time.Duration, bool) {
	content, err := os.ReadFile(c.stat)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(content) {
		if value, ok := bytes.CutPrefix(line, []byte("usage_usec ")); ok {
			usec, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
			return time.Duration(usec) * time.Microsecond, err == nil
		}
	}
	return 0, false
}

// cores returns the limit of the cgroup; false where there is none.
func (c *cpu) cores() (float64, bool) {
	if c.limit == "" {
		return 0, false
	}
	content, err := os.ReadFile(c.limit)
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(content))
	if len(fields) != 2 || fields[0] == "max" {
		return 0, false
	}
	quota, err1 := strconv.ParseFloat(fields[0], 64)
	period, err2 := strconv.ParseFloat(fields[1], 64)
	return quota / period, err1 == nil && err2 == nil && quota > 0 && period > 0
}
