// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
)

const root = "../.."

// TestInstall: both containers have the image, and what is no image is refused.
func TestInstall(t *testing.T) {
	objects, err := build(root, "default")
	if err != nil {
		t.Fatal(err)
	}
	const image = "registry.example:5000/team/ringwright@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	text, err := install(objects, image)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("image: "+image+"\n")); n != 2 || bytes.Contains(text, []byte(builtImage)) {
		t.Errorf("%d containers have the image", n)
	}
	for _, bad := range []string{"", "a b", "a\nb", "a: b", "a#b", "{a}", "'a'"} {
		if _, err := install(objects, bad); err == nil {
			t.Errorf("%q is an image", bad)
		}
	}
	if _, err := install(objects[:3], image); err == nil {
		t.Error("no container has an image, and that is no error")
	}
}

// TestChartFiles: twice the same bytes, and a file for each kind of ours.
func TestChartFiles(t *testing.T) {
	objects, err := build(root, "default")
	if err != nil {
		t.Fatal(err)
	}
	first, err := chartFiles(root, objects)
	if err != nil {
		t.Fatal(err)
	}
	second, err := chartFiles(root, objects)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range first {
		if !bytes.Equal(content, second[name]) {
			t.Errorf("%s differs", name)
		}
	}
	if len(first) != 10 {
		t.Errorf("there are %d files", len(first))
	}
	if _, err := chartFiles(root, objects[:1]); err == nil {
		t.Error("a chart without roles")
	}
}
