// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
)

// CheckResult is how a check of "verify" ended.
type CheckResult string

const (
	// CheckOK means that what was checked is as it should be.
	CheckOK CheckResult = "ok"
	// CheckFailed means that it is not.
	CheckFailed CheckResult = "failed"
	// CheckSkipped means that it could not be checked, because an earlier check failed.
	CheckSkipped CheckResult = "skipped"
)

// VerifyReport is what "verify" prints.
type VerifyReport struct {
	// Source is where the ring was read from, as text.
	Source string `json:"source"`
	// OK says that no check failed.
	OK bool `json:"ok"`
	// Checks are all checks, in the order in which they were made.
	Checks []CheckReport `json:"checks"`
}

// CheckReport is one check.
type CheckReport struct {
	// Subject is the file or object, Check what should be true of it.
	Subject string      `json:"subject"`
	Check   string      `json:"check"`
	Result  CheckResult `json:"result"`
	// Detail says what was found instead, or why the check was skipped.
	Detail string `json:"detail,omitempty"`
}

func (r *VerifyReport) add(subject, check string, result CheckResult, detail string) {
	r.Checks = append(r.Checks, CheckReport{Subject: subject, Check: check, Result: result, Detail: detail})
}

// check notes a check that failed where err is not nil, and says whether it did not.
func (r *VerifyReport) check(subject, check string, err error) bool {
	if err != nil {
		r.add(subject, check, CheckFailed, err.Error())
		return false
	}
	r.add(subject, check, CheckOK, "")
	return true
}

// equal checks that two values are the same.
func (r *VerifyReport) equal(subject, check string, got, want any) {
	var err error
	if got != want {
		err = fmt.Errorf("it is %v, not %v", got, want)
	}
	r.check(subject, check, err)
}

func (r *VerifyReport) skip(subject, check, because string) {
	r.add(subject, check, CheckSkipped, because)
}

func (r *VerifyReport) failed() int {
	n := 0
	for _, c := range r.Checks {
		if c.Result == CheckFailed {
			n++
		}
	}
	return n
}

var resultText = map[CheckResult]string{CheckOK: "ok  ", CheckFailed: "FAIL", CheckSkipped: "skip"}

func (r *VerifyReport) print(out io.Writer) {
	printf(out, "%s\n", r.Source)
	for _, c := range r.Checks {
		detail := ""
		if c.Detail != "" {
			detail = ": " + c.Detail
		}
		printf(out, "%s  %s: %s%s\n", resultText[c.Result], c.Subject, c.Check, detail)
	}
}
