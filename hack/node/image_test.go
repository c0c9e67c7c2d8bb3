// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// writePrograms writes two programs that are none, and returns their paths.
func writePrograms(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"manager", "agent"} {
		paths = append(paths, filepath.Join(dir, name))
		if err := os.WriteFile(paths[len(paths)-1], []byte("the program "+name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

func TestImage(t *testing.T) {
	out := filepath.Join(t.TempDir(), "image.tar")
	args := append([]string{"image", "-tag=localhost/ringwright:test", "-arch=arm64", "-o=" + out}, writePrograms(t)...)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), args, &stdout, &stderr); code != 0 || stdout.String() != out+"\n" {
		t.Fatalf("exit code %d, %q, %q", code, stdout.String(), stderr.String())
	}
	tag, err := name.NewTag("localhost/ringwright:test")
	if err != nil {
		t.Fatal(err)
	}
	built, err := tarball.ImageFromPath(out, &tag) // It finds the tag or fails.
	if err != nil {
		t.Fatal(err)
	}
	config, err := built.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || config.Architecture != "arm64" || !slices.Equal(config.Config.Entrypoint, []string{"/manager"}) {
		t.Errorf("the image runs %q as %q on %q", config.Config.Entrypoint, config.Config.User, config.Architecture)
	}
	layers, err := built.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v, want one", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	var got []string
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name)
	}
	want := []string{"drwxr-xr-x etc/", "-rw-r--r-- etc/passwd", "dtrwxrwxrwx tmp/", "-rwxr-xr-x manager", "-rwxr-xr-x agent"}
	if !slices.Equal(got, want) {
		t.Errorf("the image has %q, want %q", got, want)
	}
}

func TestImageDeterministic(t *testing.T) {
	var archives [2][]byte
	for i := range archives {
		out := filepath.Join(t.TempDir(), "image.tar")
		if err := writeImage(out, image{tag: "ringwright:test", user: "1:1", programs: writePrograms(t)}); err != nil {
			t.Fatal(err)
		}
		var err error
		if archives[i], err = os.ReadFile(out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("the same programs have given other bytes")
	}
}

func TestImageErrors(t *testing.T) {
	out := filepath.Join(t.TempDir(), "image.tar")
	tests := map[string]struct {
		img  image
		want string
	}{
		"no such tag": {image{tag: "Ringwright:test", programs: writePrograms(t)}, "the tag of the image"},
		"no program":  {image{tag: "ringwright:test", programs: []string{"/no/such"}}, "open /no/such"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if err := writeImage(out, tc.img); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one with %q", err, tc.want)
			}
		})
	}
}
