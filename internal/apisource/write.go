// SPDX-License-Identifier: Apache-2.0

package apisource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/ringwright/ringwright/internal/materialize"
	"github.com/ringwright/ringwright/pkg/routing"
)

// obstacle says why the directory is not what the ConfigMaps are.
type obstacle struct {
	text  string
	since time.Time
	// passing is one that ends by itself when the rest of a publication arrives.
	passing bool
}

// member is a file of a set.
type member struct {
	file
	configMap string
}

// errMixed is the error of ConfigMaps that are of different moments.
var errMixed = errors.New("the ConfigMaps are of different moments")

// write brings the directory to what the ConfigMaps hold, if that is a whole set, and says whether it did. It returns the
// ConfigMaps to read again, because their files are neither here nor in the directory, and the error of a directory that
// cannot be written.
func (s *Source) write() (stale []string, wrote bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set, err := s.collect()
	if err != nil {
		s.stuck(err)
		return nil, false, nil
	}
	if s.holds(set) {
		s.obstacle = nil
		return nil, false, nil
	}
	if stale = s.fill(set); len(stale) > 0 {
		return stale, false, nil
	}
	if err := s.verify(set); err != nil {
		s.stuck(err)
		return nil, false, nil
	}
	contents := make(map[string][]byte, len(set))
	for name, f := range set {
		contents[name] = f.content
	}
	if err := materialize.Write(s.config.Dir, contents); err != nil {
		err = fmt.Errorf("writing into %s: %w", s.config.Dir, err)
		s.stuck(err)
		return nil, false, err
	}
	s.keep(set)
	return nil, true, nil
}

// collect returns the files that belong to the present routing.json, by their names. The caller holds the lock.
func (s *Source) collect() (map[string]*member, error) {
	set := map[string]*member{}
	add := func(configMap, name string) error {
		f, read := s.files[configMap]
		switch {
		case !read:
			return fmt.Errorf("%w: ConfigMap %s/%s is not read yet", errMixed, s.namespace, configMap)
		case f.problem != "":
			return fmt.Errorf("ConfigMap %s/%s: %s", s.namespace, configMap, f.problem)
		}
		set[name] = &member{f, configMap}
		return nil
	}
	if err := add(s.routingConfigMap(), routing.FileName); err != nil {
		return nil, err
	}
	for _, ref := range references(set[routing.FileName].routing) {
		for chunk, name := range ref.Files() {
			if err := add(s.configMap(ref.Slot, chunk), name); err != nil {
				return nil, err
			}
		}
	}
	return set, nil
}

// holds says whether the directory holds the set already. The caller holds the lock.
func (s *Source) holds(set map[string]*member) bool {
	if len(set) != len(s.written) {
		return false
	}
	for name, f := range set {
		if have, found := s.written[name]; !found || have != f.sum {
			return false
		}
	}
	return true
}

// fill reads the files of which only the directory has the content, and returns the ConfigMaps of those that it does not have
// any more: somebody else wrote there. The caller holds the lock.
func (s *Source) fill(set map[string]*member) (stale []string) {
	for name, f := range set {
		if f.content != nil {
			continue
		}
		content, err := os.ReadFile(filepath.Join(s.config.Dir, name))
		if err != nil || sha256.Sum256(content) != f.sum {
			stale = append(stale, f.configMap)
			delete(s.files, f.configMap)
			continue
		}
		f.content = content
	}
	return stale
}

// verify compares the snapshots with the digests that routing.json names. The caller holds the lock.
func (s *Source) verify(set map[string]*member) error {
	for _, ref := range references(set[routing.FileName].routing) {
		hash := sha256.New()
		for _, name := range ref.Files() {
			hash.Write(set[name].content)
		}
		if digest := "sha256:" + hex.EncodeToString(hash.Sum(nil)); digest != ref.Digest {
			return fmt.Errorf("%w: slot %s has %s, %s names %s", errMixed, ref.Slot, digest, routing.FileName, ref.Digest)
		}
	}
	return nil
}

// keep notes that the directory holds the set, and lets its content go. The caller holds the lock.
func (s *Source) keep(set map[string]*member) {
	s.obstacle, s.written = nil, make(map[string]sum, len(set))
	for name, f := range set {
		s.written[name] = f.sum
		f.content = nil
		s.files[f.configMap] = f.file
	}
	s.counters.writes++
	head := set[routing.FileName].routing
	s.config.Logger.Info("files written", "ring", head.Ring, "generation", head.Generation, "digest", head.Stable.Digest, "files", len(set))
}

// stuck notes why nothing is written. The caller holds the lock.
func (s *Source) stuck(err error) {
	next := obstacle{text: err.Error(), since: time.Now(), passing: errors.Is(err, errMixed)}
	if s.obstacle != nil {
		next.since = s.obstacle.since
	}
	if s.obstacle == nil || s.obstacle.text != next.text {
		level := slog.LevelWarn
		if next.passing {
			level = slog.LevelDebug
		}
		s.config.Logger.Log(context.Background(), level, "nothing to write", "reason", next.text)
	}
	s.obstacle = &next
}
