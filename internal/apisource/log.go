// SPDX-License-Identifier: Apache-2.0

package apisource

import (
	"context"
	"log/slog"

	"k8s.io/klog/v2"
)

// TakeLogs sends what client-go logs without a logger of its own to the given one. It concerns the whole process, and is called
// before anything runs.
func TakeLogs(logger *slog.Logger) { klog.SetSlogLogger(slog.New(quiet{logger.Handler()})) }

// quiet is for what client-go logs: a failure is told by the source already, so all of it is for debugging.
type quiet struct{ to slog.Handler }

func (q quiet) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.to.Enabled(ctx, slog.LevelDebug)
}

func (q quiet) Handle(ctx context.Context, record slog.Record) error {
	record.Level = slog.LevelDebug
	if !q.to.Enabled(ctx, record.Level) { // Errors come without the question.
		return nil
	}
	return q.to.Handle(ctx, record)
}

func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.to.WithAttrs(attrs)} }

func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.to.WithGroup(name)} }
