// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// lintable is a manifest that nothing is wrong with.
const lintable = `apiVersion: ringwright.dev/v1alpha1
kind: RingMigration
metadata: {name: v1-to-v3, namespace: cdn}
spec:
  ringRef: {name: edge-cache}
  stages:
  - name: validation
    datacenters: {names: [lab01, lab02]}
    steps:
    - {traffic: "0.5%", soak: 15m, gates: [agents]}
    - {traffic: "100%", soak: 24h, approval: AfterSoak}
  - name: world
    datacenters: {remainder: true}
    steps:
    - {traffic: "10%", soak: 1h}
    - {traffic: "100%", soak: 6h}
  gates:
  - {name: agents, consumers: {maxErrorRatio: "0.1%"}}
  retirement: {approval: AfterSoak}
`

func TestMigrationLint(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.yaml", lintable+"---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n")
	if got := succeed(t, "", "migration", "lint", "-f", "m.yaml", "--strict"); got != "RingMigration cdn/v1-to-v3\n  nothing is wrong\n0 errors, 0 warnings\n" {
		t.Errorf("got %q", got)
	}
	bold := lintable
	for _, pair := range [][2]string{
		{`{traffic: "0.5%", soak: 15m, gates: [agents]}`, `{traffic: "20%", soak: 2m, gates: [agents]}`},
		{`{names: [lab01, lab02]}`, `{names: [lab01, ams01]}`},
		{`{remainder: true}`, `{names: [ams01]}`},
		{`retirement: {approval: AfterSoak}`, `retirement: {soak: 0s}`},
	} {
		if !strings.Contains(bold, pair[0]) {
			t.Fatal(pair[0])
		}
		bold = strings.Replace(bold, pair[0], pair[1], 1)
	}
	write(t, "bold.yaml", bold)
	got := run(t, "", "migration", "lint", "-f", "bold.yaml")
	if got.code != ExitFailure || got.errOut != "error: bold.yaml: 1 error, 5 warnings\n" {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
	assertGolden(t, "migration-lint-bold", got.out)
	got = run(t, bold+"---\n"+lintable, "migration", "lint", "-f", "-", "-o", "yaml")
	assertGolden(t, "migration-lint-yaml", got.out)
}

// TestMigrationLintErrors are those of the API server and of the operator.
func TestMigrationLintErrors(t *testing.T) {
	for want, pair := range map[string][2]string{
		"error: spec.stages[0].datacenter: unknown field":                                  {"datacenters: {names", "datacenter: {names"},
		"the traffic of steps must grow":                                                   {`"0.5%", soak: 15m`, `"100%", soak: 15m`},
		"only the last stage can take the remainder":                                       {"{names: [lab01, lab02]}", "{remainder: true}"},
		"stages[0].steps[0].gates must be among the names of gates; got agent":             {"gates: [agents]", "gates: [agent]"},
		"failureWindow must be at least 120s, so that 3 failures at interval 60s fall":     {"{name: agents,", "{name: agents, failureWindow: 1m59s,"},
		`error: spec.stages[1] "world": datacenter "lab02" is in stage "validation" alrea`: {"{remainder: true}", "{names: [lab02]}"},
		"error: spec.gates[agents].failWhen: Invalid value: \"value > \"":                  {`consumers: {maxErrorRatio: "0.1%"}`, `prometheus: {address: "http://p", query: up}, failWhen: "value > "`},
	} {
		got := run(t, strings.Replace(lintable, pair[0], pair[1], 1), "migration", "lint", "-f", "-")
		if got.code != ExitFailure {
			t.Errorf("%s: exit code %d", want, got.code)
		}
		wantContains(t, got.out, want)
	}
	wantContains(t, failWith(t, ExitFailure, "", "migration", "lint", "-f", "-"), "- is empty: a manifest of a RingMigration is needed")
	wantContains(t, failWith(t, ExitFailure, edgeManifest, "migration", "lint", "-f", "-"), "- has no RingMigration, only HashRing")
	wantContains(t, fail(t, ExitUsage, "migration", "lint"), "no manifest given: -f names the file, or - for the standard input")
}

// TestMigrationLintWarnings: each is given for what it is about, and does not fail without --strict.
func TestMigrationLintWarnings(t *testing.T) {
	const end = "  retirement: {approval: AfterSoak}\n"
	for want, pair := range map[string][2]string{
		"spec.gates: no gate is enforced":                                                      {"{name: agents,", "{name: agents, mode: Observe,"},
		"spec.stages[0].steps[0].gates: none of them is enforced":                              {"{name: agents,", "{name: other, consumers: {maxErrorRatio: \"1%\"}}\n  - {name: agents, mode: Observe,"},
		"spec.stages[0].steps[0].traffic is 10.01%: the first step is above 10% of the keys":   {`"0.5%"`, `"10.01%"`},
		"spec.stages[0].steps[0].soak is 2m59s: gate agents takes 3m to fail 3 times":          {"soak: 15m", "soak: 2m59s"},
		"spec.stages: no stage takes the remainder":                                            {"{remainder: true}", "{names: [ams01]}"},
		"spec.retirement.approval is None, as that of the last step":                           {end, ""},
		"spec.retirement.soak is 0s: the old ring goes as soon as the last step is complete":   {end, "  retirement: {approval: AfterSoak, soak: 0s}\n"},
		"spec.acknowledgement.quorum is 99.5%: steps go on while some consumers":               {end, end + "  acknowledgement: {quorum: \"99.5%\"}\n"},
		"spec.rollback.automatic is Disabled: a gate that fails holds":                         {end, end + "  rollback: {automatic: Disabled}\n"},
		"spec.onDelete is Freeze":                                                              {end, end + "  onDelete: Freeze\n"},
		"spec.suspend is true":                                                                 {end, end + "  suspend: true\n"},
		"spec.direction is Backward":                                                           {end, end + "  direction: Backward\n"},
		"spec.limits.maxTraffic is 50%: the old ring is not retired":                           {end, end + "  limits: {maxTraffic: 50%}\n"},
		"spec.limits.excludedDatacenters has lab02: the old ring is not retired":               {end, end + "  limits: {excludedDatacenters: [lab02]}\n"},
		`spec.gates[1] "other": every step names its gates, and none names this one, so that `: {lintable, strings.NewReplacer(`"100%", soak`, `"100%", gates: [agents], soak`, `"10%", soak`, `"10%", gates: [agents], soak`).Replace(strings.Replace(lintable, "  retirement", "  - {name: other, consumers: {maxErrorRatio: \"1%\"}}\n  retirement", 1))},
	} {
		t.Run(want, func(t *testing.T) {
			if !strings.Contains(lintable, pair[0]) {
				t.Fatal("the manifest has no such part")
			}
			manifest := strings.Replace(lintable, pair[0], pair[1], 1)
			got := run(t, manifest, "migration", "lint", "-f", "-")
			if got.code != ExitOK || got.errOut != "" {
				t.Errorf("exit code %d: %s", got.code, got.errOut)
			}
			wantContains(t, got.out, "warning: ")
			wantContains(t, got.out, want)
			failWith(t, ExitFailure, manifest, "migration", "lint", "-f", "-", "--strict")
		})
	}
}
