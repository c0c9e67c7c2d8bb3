// SPDX-License-Identifier: Apache-2.0

// Package materialize writes files into a directory as kubelet writes a ConfigMap or projected volume, for tests and for
// programs that stand in for a kubelet.
//
// The files of one call appear at one moment: they are written into a new directory with a name such as
// "..2026_01_31_12_00_00.123456789", and the link "..data" is renamed to lead there. What users open are links through
// "..data". The directory before is removed afterwards, so a reader that followed "..data" before the swap can find its
// files gone, and a watch on a file or on "..data" is lost: with kubelet it is the same.
//
// That it does the same as the writer of kubelet, down to the events that a watch sees, is tested in the module
// test/materialize. It differs where that one fails or looks away: it takes up the work of a writer that was killed before its
// rename, it takes files and directories that change places, it refuses a path that is not in its shortest form, and it returns
// an error where something that is no link of its own is in the way of a file.
//
// Calls for one directory must not overlap.
package materialize

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	dataLink    = "..data"
	newDataLink = "..data_tmp"
	// stampForm is what the names of the directories with the data look like; MkdirTemp appends digits.
	stampForm = "..2006_01_02_15_04_05."
	// maxNameBytes is how long each element of a path can be, maxPathBytes the whole of it.
	maxNameBytes, maxPathBytes = 255, 4096
	// fileMode is what kubelet gives the files of a ConfigMap by default.
	fileMode = 0o644
)

// Write makes files the content of dir, which it creates where needed: the keys are relative paths with slashes. What an
// earlier call wrote and files does not hold is gone afterwards. Nothing is touched where nothing differs.
//
// It returns an error, and has changed nothing that a user of dir can see, for a path that is empty, absolute, not in its
// shortest form, starts with "..", is longer than 4,096 bytes or has an element of more than 255. An error of the file system can leave a
// directory behind that nothing leads to; the next call does not mind.
func Write(dir string, files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := checkPath(name); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if old != "" && holds(filepath.Join(dir, old), files) {
		return linkFiles(dir, files) // An earlier call may have been killed before it had linked them.
	}
	fresh, err := writeData(dir, files)
	if err != nil {
		return err
	}
	if err := swap(dir, fresh); err != nil {
		return errors.Join(err, os.RemoveAll(filepath.Join(dir, fresh)))
	}
	if err := linkFiles(dir, files); err != nil {
		return err
	}
	if old == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(dir, old))
}

func checkPath(name string) error {
	if name == "" || path.IsAbs(name) || path.Clean(name) != name || name == "." || strings.HasPrefix(name, "..") {
		return fmt.Errorf("path %q: starts with .. or is not a relative path in its shortest form", name)
	}
	if len(name) > maxPathBytes {
		return fmt.Errorf("path %.40q…: it has %d bytes, the limit is %d", name, len(name), maxPathBytes)
	}
	for element := range strings.SplitSeq(name, "/") {
		if len(element) > maxNameBytes {
			return fmt.Errorf("path %q: an element has %d bytes, the limit is %d", name, len(element), maxNameBytes)
		}
	}
	return nil
}

var errDiffers = errors.New("the directory holds other files")

// holds says whether dir holds exactly these files.
func holds(dir string, files map[string][]byte) bool {
	count := 0
	err := filepath.WalkDir(dir, func(full string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, full)
		if err != nil {
			return err
		}
		have, err := os.ReadFile(full)
		if err != nil {
			return err
		}
		if want, wanted := files[filepath.ToSlash(name)]; !wanted || !bytes.Equal(have, want) {
			return errDiffers
		}
		count++
		return nil
	})
	return err == nil && count == len(files)
}

// writeData writes the files into a new directory within dir and returns its name.
func writeData(dir string, files map[string][]byte) (string, error) {
	fresh, err := os.MkdirTemp(dir, time.Now().UTC().Format(stampForm))
	if err != nil {
		return "", err
	}
	if err := os.Chmod(fresh, 0o755); err != nil { // MkdirTemp lets only the owner in.
		return "", err
	}
	for name, content := range files {
		full := filepath.Join(fresh, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), os.ModePerm); err != nil {
			return "", err
		}
		if err := os.WriteFile(full, content, fileMode); err != nil {
			return "", err
		}
		if err := os.Chmod(full, fileMode); err != nil { // Readers run as other users, whatever the umask here is.
			return "", err
		}
	}
	return filepath.Base(fresh), nil
}

// swap renames "..data" to lead to the data directory fresh.
func swap(dir, fresh string) error {
	link := filepath.Join(dir, newDataLink)
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(fresh, link); err != nil {
		return err
	}
	return os.Rename(link, filepath.Join(dir, dataLink))
}

// linkFiles creates the links that users open, one for each first element of a path, and removes those that lead nowhere.
func linkFiles(dir string, files map[string][]byte) error {
	wanted := make(map[string]bool)
	for name := range files {
		first, _, _ := strings.Cut(name, "/")
		wanted[first] = true
	}
	for name := range wanted {
		target, link := filepath.Join(dataLink, name), filepath.Join(dir, name)
		err := os.Symlink(target, link)
		if errors.Is(err, fs.ErrExist) {
			if there, _ := os.Readlink(link); there == target {
				continue
			}
		}
		if err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		full := filepath.Join(dir, entry.Name())
		target, err := os.Readlink(full)
		if err != nil || wanted[entry.Name()] || target != filepath.Join(dataLink, entry.Name()) {
			continue
		}
		if err := os.Remove(full); err != nil {
			return err
		}
	}
	return nil
}

// Sweep removes from dir what a writer that was killed has left there: directories with data that nothing leads to. The
// writer of a directory calls it before its first [Write]. A directory that does not exist is swept.
func Sweep(dir string) error {
	current, err := os.Readlink(filepath.Join(dir, dataLink))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		_, err := time.Parse(stampForm, entry.Name()[:min(len(entry.Name()), len(stampForm))])
		if err != nil || !entry.IsDir() || entry.Name() == current {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
