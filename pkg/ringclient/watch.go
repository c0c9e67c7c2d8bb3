// SPDX-License-Identifier: Apache-2.0

package ringclient

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fsnotify/fsnotify"

	"github.com/ringwright/ringwright/pkg/routing"
)

// watch waits for changes in a directory and those of its subdirectories that a ring can lie in. It watches directories,
// never files or "..data": what kubelet swaps takes the watch on it away.
//
// Where events cannot be had, its channels stay silent and the poll does the work.
type watch struct {
	dir    string
	notify *fsnotify.Watcher
	// changes says that something changed, failures that changes may have been missed. They are nil without notify.
	changes  <-chan fsnotify.Event
	failures <-chan error
}

// refresh watches what is not watched yet: a directory that did not exist or was replaced, or all where the machine had no
// watch left. It is called before each load, so that no change can fall between the two. Watching again what is watched
// changes nothing.
func (w *watch) refresh() error {
	if w.notify == nil {
		notify, err := fsnotify.NewWatcher()
		if err != nil {
			return err
		}
		w.notify, w.changes, w.failures = notify, notify.Events, notify.Errors
	}
	problem := w.notify.Add(w.dir)
	for _, name := range routing.Folders() {
		sub := filepath.Join(w.dir, name)
		// A link leads into a volume that is watched at its root.
		if info, err := os.Lstat(sub); err != nil || !info.IsDir() {
			continue
		}
		if err := w.notify.Add(sub); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problem = errors.Join(problem, err)
		}
	}
	return problem
}

func (w *watch) close() {
	if w.notify != nil {
		_ = w.notify.Close() // It always returns nil.
	}
}
