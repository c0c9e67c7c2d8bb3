// SPDX-License-Identifier: Apache-2.0

// Package controller holds the reconcilers. They only move data: what to do is decided in package plan, and how it is
// read and written in package publish.
package controller
