// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// image is what an image of static programs is made of.
type image struct {
	tag      string   // Its name, with a tag.
	user     string   // Who runs it, as UID:GID.
	arch     string   // That of the programs; empty for this machine's.
	programs []string // They go into the root folder; the first one is the entry point.
}

// runImage writes an image without a builder or a base image, for the short way from a change to a pod.
func runImage(_ context.Context, _ layout, args []string, stdout io.Writer) error {
	var img image
	fs := flag.NewFlagSet("image", flag.ContinueOnError)
	fs.StringVar(&img.tag, "tag", "", "the `NAME:TAG` of the image, such as localhost/ringwright:e2e (required)")
	fs.StringVar(&img.user, "user", "65532:65532", "the `UID:GID` that it runs as")
	fs.StringVar(&img.arch, "arch", runtime.GOARCH, "the architecture of the programs")
	out := fs.String("o", "", "the `FILE` to write (required)")
	if err := parse(fs, args); err != nil {
		return err
	}
	img.programs = fs.Args()
	if img.tag == "" || *out == "" || len(img.programs) == 0 {
		return errors.New("image: -tag, -o and a program are required")
	}
	if err := writeImage(*out, img); err != nil {
		return err
	}
	return printLine(stdout, *out)
}

// writeImage writes an archive in docker's format. The same programs give the same bytes.
func writeImage(path string, img image) error {
	tag, err := name.NewTag(img.tag)
	if err != nil {
		return fmt.Errorf("the tag of the image: %w", err)
	}
	data, err := img.layer()
	if err != nil {
		return err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	if err != nil {
		return fmt.Errorf("making a layer: %w", err)
	}
	built, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return fmt.Errorf("making an image: %w", err)
	}
	config, err := built.ConfigFile()
	if err != nil {
		return fmt.Errorf("making an image: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", img.arch
	if img.arch == "" {
		config.Architecture = runtime.GOARCH
	}
	config.Config = v1.Config{
		User: img.user, WorkingDir: "/", Env: []string{"PATH=/"},
		Entrypoint: []string{"/" + filepath.Base(img.programs[0])},
	}
	if built, err = mutate.ConfigFile(built, config); err != nil {
		return fmt.Errorf("making an image: %w", err)
	}
	if err := tarball.WriteToFile(path, tag, built); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// layer returns the archive of the image's files: the programs, and what a program may expect of a root folder.
func (img image) layer() ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	const passwd = "root:x:0:0:root:/:/nonexistent\nnonroot:x:65532:65532:nonroot:/:/nonexistent\n"
	entries := []struct {
		header tar.Header
		data   string
	}{
		{tar.Header{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755}, ""},
		{tar.Header{Typeflag: tar.TypeReg, Name: "etc/passwd", Mode: 0o644}, passwd},
		{tar.Header{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777}, ""},
	}
	for _, e := range entries {
		if err := writeEntry(w, e.header, []byte(e.data)); err != nil {
			return nil, err
		}
	}
	for _, program := range img.programs {
		data, err := os.ReadFile(program)
		if err != nil {
			return nil, err
		}
		if err := writeEntry(w, tar.Header{Typeflag: tar.TypeReg, Name: filepath.Base(program), Mode: 0o755}, data); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}

// writeEntry writes one file or directory, of root and of no time.
func writeEntry(w *tar.Writer, header tar.Header, data []byte) error {
	header.Size = int64(len(data))
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	_, err := w.Write(data)
	return err
}
