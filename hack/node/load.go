// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
)

// runLoad imports archives of images, so that pods can use them.
func runLoad(ctx context.Context, l layout, args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("load: name an archive with an image")
	}
	for _, path := range args {
		if err := l.load(ctx, path, stdout); err != nil {
			return fmt.Errorf("loading %s: %w", path, err)
		}
	}
	return nil
}

func (l layout) load(ctx context.Context, path string, stdout io.Writer) error {
	file, err := os.Open(path) // The path may mean something else inside.
	if err != nil {
		return err
	}
	defer file.Close()
	cmd, err := l.inside(ctx, "ctr", "images", "import", "-")
	if err != nil {
		return err
	}
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = file, stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}
