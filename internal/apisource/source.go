// SPDX-License-Identifier: Apache-2.0

package apisource

import (
	"context"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/pkg/routing"
)

const (
	// maxWatches is how many ConfigMaps a ring can have: routing.json, and all chunks of both slots.
	maxWatches = 1 + 2*routing.MaxChunks
	// writeRetry is how long to wait after a set could not be written, the first time and at most.
	writeRetry, maxWriteRetry = time.Second, 30 * time.Second
)

// Source follows the ConfigMaps of one HashRing. Its methods may be called concurrently.
type Source struct {
	config          Config
	namespace, name string
	client          rest.Interface
	// changed says that a ConfigMap is another than before.
	changed chan struct{}

	mu sync.Mutex
	// files has what was read of each ConfigMap, by its name.
	files map[string]file
	// written is the SHA-256 of each file that this process wrote into the directory, by its name.
	written map[string]sum
	// obstacle is nil where the directory is what the ConfigMaps are.
	obstacle *obstacle
	// health is that of each watch, by the name of its ConfigMap.
	health   map[string]*health
	counters counters
}

func newSource(config Config, client rest.Interface) *Source {
	s := &Source{
		config: config, client: client, changed: make(chan struct{}, 1),
		files: map[string]file{}, written: map[string]sum{}, health: map[string]*health{},
		counters: counters{watchErrors: map[string]uint64{}},
	}
	s.namespace, s.name, _ = strings.Cut(config.HashRing, "/")
	return s
}

// Run follows the ConfigMaps until ctx ends, and returns nil then. What goes wrong meanwhile is tried again, and told by
// [Source.Warnings].
func (s *Source) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(quiet{s.config.Logger.Handler()}))
	if err := materialize.Sweep(s.config.Dir); err != nil {
		return err
	}
	running := watches{source: s, cancel: map[string]context.CancelFunc{}}
	defer running.stop()
	delay := writeRetry
	for {
		running.want(ctx, s.names())
		stale, wrote, err := s.write()
		running.restart(ctx, stale)
		if wrote {
			// What was received is in the directory now. Left to itself the heap would keep the room of several snapshots, and
			// publications are rare enough for a collection each.
			debug.FreeOSMemory()
		}
		var retry <-chan time.Time
		if err != nil {
			retry = time.After(delay)
			delay = min(2*delay, maxWriteRetry)
		} else {
			delay = writeRetry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		case <-retry:
		}
	}
}

// configMap returns the name of the ConfigMap that a chunk is in.
func (s *Source) configMap(slot routing.Slot, chunk int) string {
	return s.name + "-" + slot.ChunkFolder(chunk)
}

func (s *Source) routingConfigMap() string { return s.name + "-" + routing.RoutingFolder }

// names returns the ConfigMaps to watch and the file that each has: routing.json and the first chunks of both slots always, so
// that a snapshot is here before the routing.json that names it; further chunks while it names them.
func (s *Source) names() map[string]string {
	names := map[string]string{s.routingConfigMap(): routing.FileName}
	for _, slot := range []routing.Slot{routing.SlotA, routing.SlotB} {
		names[s.configMap(slot, 0)] = slot.ChunkFileName(0)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range references(s.files[s.routingConfigMap()].routing) {
		for chunk, name := range ref.Files() {
			names[s.configMap(ref.Slot, chunk)] = name
		}
	}
	return names
}

// set takes what was read of a ConfigMap, unless ctx, that of its watch, has ended: it is forgotten then.
func (s *Source) set(ctx context.Context, configMap string, f file) {
	s.mu.Lock()
	if ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	if old, known := s.files[configMap]; known && f.content != nil && old.problem == "" && old.sum == f.sum {
		f.content = old.content // Nil where it is in the directory.
	}
	s.files[configMap] = f
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default: // It is to be looked at already.
	}
}

// forget drops what was read of a ConfigMap that is not watched any more. The ctx of its watch has ended, and whoever notes something
// looks at that under the same lock, so that nothing comes back.
func (s *Source) forget(configMap string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.files, configMap)
	delete(s.health, configMap)
}
