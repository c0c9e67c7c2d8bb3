// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/ringwright/ringwright/api/v1alpha1"
)

// The defaults of a gate; the schema has the same ones.
const (
	defaultInterval = time.Minute
	defaultWindow   = 5 * time.Minute
	defaultTimeout  = 10 * time.Second
)

// compiled is a gate that can be measured.
type compiled struct {
	v1alpha1.MigrationGate
	interval, window, timeout time.Duration
	// fail and pass are nil where there is no such expression.
	fail, pass *condition
	// baseline is the query of it, "" where there is none.
	baseline string
	// maxErrors and maxFailovers are in millionths, nil where there is no limit.
	maxErrors, maxFailovers *uint64
}

// Validate says what is wrong with a gate beyond what the schema of RingMigration refuses: every field that is wrong, with its
// value. It returns nil where nothing is.
func Validate(g v1alpha1.MigrationGate) error {
	_, err := compileGate(g)
	return err
}

func compileGate(g v1alpha1.MigrationGate) (compiled, error) {
	c := compiled{MigrationGate: *g.DeepCopy(), interval: duration(g.Interval, defaultInterval)}
	path := field.NewPath("gates").Key(g.Name)
	var wrong field.ErrorList
	if c.interval < time.Second {
		wrong = append(wrong, field.Invalid(path.Child("interval"), c.interval.String(), "must be at least 1s"))
	}
	kinds := 0
	if g.Prometheus != nil {
		kinds++
		wrong = append(wrong, c.prometheus(path)...)
	} else if g.FailWhen != "" || g.PassWhen != "" {
		wrong = append(wrong, field.Forbidden(path.Child("failWhen"), "failWhen and passWhen go with prometheus"))
	}
	if g.Consumers != nil {
		kinds++
		wrong = append(wrong, c.consumers(path.Child("consumers"))...)
	}
	if g.Object != nil {
		kinds++
		wrong = append(wrong, object(path.Child("object"), *g.Object)...)
	}
	if kinds != 1 {
		wrong = append(wrong, field.Required(path, "exactly one of prometheus, consumers and object must be set"))
	}
	return c, wrong.ToAggregate()
}

func duration(d *metav1.Duration, absent time.Duration) time.Duration {
	if d == nil {
		return absent
	}
	return d.Duration
}

// prometheus compiles what belongs to queries.
func (c *compiled) prometheus(path *field.Path) field.ErrorList {
	p, at := c.Prometheus, path.Child("prometheus")
	c.window, c.timeout = duration(p.Window, defaultWindow), duration(p.Timeout, defaultTimeout)
	var wrong field.ErrorList
	if c.window < time.Second {
		wrong = append(wrong, field.Invalid(at.Child("window"), c.window.String(), "must be at least 1s"))
	}
	if c.timeout <= 0 {
		wrong = append(wrong, field.Invalid(at.Child("timeout"), c.timeout.String(), "must be above 0s"))
	}
	if _, err := parseAddress(p.Address); err != nil {
		wrong = append(wrong, field.Invalid(at.Child("address"), redacted(p.Address), err.Error()))
	}
	var names []string
	for name, query := range map[string]string{"query": p.Query, "baselineQuery": p.BaselineQuery, "samplesQuery": p.SamplesQuery} {
		used, err := uses(query)
		if err != nil {
			wrong = append(wrong, field.Invalid(at.Child(name), query, err.Error()))
		}
		if name == "query" {
			names = used
		}
	}
	if strings.TrimSpace(p.Query) == "" {
		wrong = append(wrong, field.Required(at.Child("query"), "it gives value"))
	}
	c.baseline = p.BaselineQuery
	if c.baseline == "" && slices.Contains(names, varRing) {
		c.baseline = p.Query
	}
	if c.MinSamples > 0 && p.SamplesQuery == "" {
		wrong = append(wrong, field.Required(at.Child("samplesQuery"), "minSamples needs it"))
	}
	wrong = append(wrong, c.conditions(path)...)
	slices.SortStableFunc(wrong, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return wrong
}

// conditions compiles the expressions.
func (c *compiled) conditions(path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	if c.FailWhen == "" && c.PassWhen == "" {
		wrong = append(wrong, field.Required(path.Child("failWhen"), "at least one of failWhen and passWhen must be set"))
	}
	for _, e := range []struct {
		name, text string
		into       **condition
	}{{"failWhen", c.FailWhen, &c.fail}, {"passWhen", c.PassWhen, &c.pass}} {
		if e.text == "" {
			continue
		}
		compiled, err := compile(e.text)
		if err != nil {
			wrong = append(wrong, field.Invalid(path.Child(e.name), e.text, err.Error()))
			continue
		}
		*e.into = compiled
		if c.baseline == "" && compiled.reads("baseline") {
			wrong = append(wrong, field.Invalid(path.Child(e.name), e.text, "there is no baseline: set prometheus.baselineQuery, or use $ring in prometheus.query"))
		}
		if c.Prometheus.SamplesQuery == "" && compiled.reads("samples") {
			wrong = append(wrong, field.Invalid(path.Child(e.name), e.text, "there are no samples: set prometheus.samplesQuery"))
		}
	}
	return wrong
}

// consumers compiles the limits of the counters.
func (c *compiled) consumers(path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	for _, l := range []struct {
		name, text string
		into       **uint64
	}{{"maxErrorRatio", c.Consumers.MaxErrorRatio, &c.maxErrors}, {"maxFailoverRatio", c.Consumers.MaxFailoverRatio, &c.maxFailovers}} {
		if l.text == "" {
			continue
		}
		limit, err := parseRatio(l.text)
		if err != nil {
			wrong = append(wrong, field.Invalid(path.Child(l.name), l.text, err.Error()))
			continue
		}
		*l.into = &limit
	}
	if c.Consumers.MaxErrorRatio == "" && c.Consumers.MaxFailoverRatio == "" {
		wrong = append(wrong, field.Required(path, "at least one of maxErrorRatio and maxFailoverRatio must be set"))
	}
	return wrong
}

// object checks what names an object.
func object(path *field.Path, o v1alpha1.ObjectGate) field.ErrorList {
	var wrong field.ErrorList
	if version, err := schema.ParseGroupVersion(o.APIVersion); err != nil || version.Version == "" {
		wrong = append(wrong, field.Invalid(path.Child("apiVersion"), o.APIVersion, "must be a group and version, such as apps/v1, or v1"))
	}
	for name, value := range map[string]string{"kind": o.Kind, "name": o.Name, "condition": o.Condition} {
		if value == "" {
			wrong = append(wrong, field.Required(path.Child(name), ""))
		}
	}
	slices.SortStableFunc(wrong, func(a, b *field.Error) int { return cmp.Compare(a.Field, b.Field) })
	return wrong
}

// parseAddress returns the URL of a Prometheus.
func parseAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("must be a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must be a URL of http or https, such as http://prometheus.monitoring:9090")
	case u.Hostname() == "":
		return nil, errors.New("must have a host")
	case u.User != nil:
		return nil, errors.New("must not have a user and password: put them into a Secret and name that in auth.secretName")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("must not have a query or fragment: the path is all that is added to")
	}
	return u, nil
}

// redacted is an address without the password that should not be in it.
func redacted(address string) string {
	if u, err := url.Parse(address); err == nil && u.User != nil {
		return u.Redacted()
	}
	return address
}
