// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ringwright/ringwright/api/v1alpha1"
	"github.com/ringwright/ringwright/internal/migration"
	"github.com/ringwright/ringwright/internal/promclient"
)

// oneSample is the answer of a Prometheus of one number at a time.
func oneSample(value string, at time.Time) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[%d,%q]}]}}`, at.Unix(), value)
}

// serve starts a server that is none.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// secrets reads one Secret, or returns an error.
type secrets struct {
	client.Reader
	data  map[string]string
	err   error
	reads int
}

func (s *secrets) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.reads++
	if s.err != nil {
		return s.err
	}
	if key != (client.ObjectKey{Namespace: "cdn", Name: "prometheus"}) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
	}
	o.(*corev1.Secret).Data = map[string][]byte{}
	for name, value := range s.data {
		o.(*corev1.Secret).Data[name] = []byte(value)
	}
	return nil
}

func withAuth(g v1alpha1.MigrationGate) v1alpha1.MigrationGate {
	g.Prometheus.Auth = &v1alpha1.GateAuth{SecretName: "prometheus"}
	return g
}

// TestAuthentication asks a real Prometheus behind a proxy with TLS that wants credentials.
func TestAuthentication(t *testing.T) {
	target, err := url.Parse(promServer(t))
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if r.Header.Get("Authorization") != "Bearer correct-token" && (user != "me" || password != "correct-password") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/prefix")
		forward.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	g := withAuth(asked(server.URL+"/prefix/", errorRatio))
	for name, c := range map[string]struct {
		data   map[string]string
		err    error
		want   migration.Result
		detail string
	}{
		"token":              {map[string]string{"token": "correct-token\n", "ca.crt": ca}, nil, migration.Pass, "value 0.01"},
		"password":           {map[string]string{"username": "me", "password": "correct-password", "ca.crt": ca}, nil, migration.Pass, "value 0.01"},
		"wrong token":        {map[string]string{"token": "wrong-token", "ca.crt": ca}, nil, migration.Error, "query: it does not accept the credentials (HTTP status 401)"},
		"none":               {map[string]string{"ca.crt": ca}, nil, migration.Error, "query: it does not accept the credentials (HTTP status 401)"},
		"no CA":              {map[string]string{"token": "correct-token"}, nil, migration.Error, "certificate signed by unknown authority"},
		"empty":              {map[string]string{"Token": "correct-token"}, nil, migration.Error, "the Secret prometheus has none of the keys token, username with password, and ca.crt"},
		"both":               {map[string]string{"token": "t", "username": "u", "password": "p"}, nil, migration.Error, "has both token and username or password"},
		"no password":        {map[string]string{"username": "u"}, nil, migration.Error, "one of username and password without the other"},
		"a colon":            {map[string]string{"username": "u:v", "password": "p"}, nil, migration.Error, "a username with a colon"},
		"a token of lines":   {map[string]string{"token": "secret-1\nsecret-2"}, nil, migration.Error, "a token with characters that a header cannot have"},
		"CA of no PEM":       {map[string]string{"ca.crt": "secret"}, nil, migration.Error, "no certificate in PEM form in ca.crt"},
		"forbidden":          {nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "prometheus", nil), migration.Error, "a Role in namespace cdn with verb get on secrets of that name"},
		"API server is down": {nil, fmt.Errorf("connection refused"), migration.Error, "reading Secret prometheus: connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			reader := &secrets{data: c.data, err: c.err}
			got := measureAt(t, Options{Secrets: reader}, about(5), g, zero.Add(20*time.Minute))
			if got.Result != c.want || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("%s %q, want %s %q", got.Result, got.Detail, c.want, c.detail)
			}
			if strings.Contains(got.Detail, "secret-") || reader.reads != 1 {
				t.Errorf("%d reads, %s", reader.reads, got.Detail)
			}
		})
	}
	missing := g.DeepCopy()
	missing.Prometheus.Auth.SecretName = "other"
	if got := measureAt(t, Options{Secrets: &secrets{}}, about(5), *missing, zero.Add(20*time.Minute)); got.Detail != "there is no Secret other in namespace cdn" {
		t.Error(got.Detail)
	}
}

// TestServersThatAreNone has each answer as the right result, and no secret in any.
func TestServersThatAreNone(t *testing.T) {
	now := zero.Add(20 * time.Minute)
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked with %s", r.Header) })
	write := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    migration.Result
		detail  string
		calls   int32
	}{
		"a value":  {write(200, oneSample("0.01", now)), migration.Pass, "value 0.01", 1},
		"no clock": {write(200, oneSample("0.01", now.Add(time.Hour))), migration.Pass, "value 0.01", 1},
		"late":     {write(200, oneSample("0.01", now.Add(-2*time.Minute-time.Second))), migration.NoData, "query: a value of 2m1s before, which is too old", 1},
		"a warning": {write(200, strings.Replace(oneSample("0.01", now), `"data"`, `"warnings":["half of\nthe stores"],"data"`, 1)), migration.Pass,
			"value 0.01: passWhen holds: value <= 0.02; warning: half of the stores", 1},
		"a histogram":        {write(200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"1","sum":"1"}]}]}}`), migration.Error, "a native histogram", 1},
		"bad data":           {write(400, `{"status":"error","errorType":"bad_data","error":"parse error"}`), migration.Error, "query: bad_data: parse error", 1},
		"cannot execute":     {write(422, `{"status":"error","errorType":"execution","error":"many-to-many"}`), migration.Error, "query: execution: many-to-many", 1},
		"a login page":       {write(200, "<html>log in</html>"), migration.Error, "it does not answer as a Prometheus does", 1},
		"not found":          {write(404, "no"), migration.Error, "client_error: client error: 404", 1},
		"forbidden":          {write(403, "no"), migration.Error, "it does not allow the query with these credentials (HTTP status 403)", 2}, // As POST, then as GET.
		"overloaded":         {write(429, "no"), migration.Error, "client error: 429", promclient.MaxAttempts},
		"broken":             {write(500, "no"), migration.Error, "server error: 500", promclient.MaxAttempts},
		"unavailable":        {write(503, `{"status":"error","errorType":"unavailable","error":"starting"}`), migration.Error, "unavailable: starting", promclient.MaxAttempts},
		"its own timeout":    {write(503, `{"status":"error","errorType":"timeout","error":"query timed out"}`), migration.Error, "timeout: query timed out", 1},
		"too large":          {write(200, strings.Repeat(" ", MaxAnswerBytes)+oneSample("0.01", now)), migration.Error, "its answer has more than 262144 bytes: aggregate", 1},
		"as large as can be": {write(200, oneSample("0.01", now)+strings.Repeat(" ", MaxAnswerBytes-len(oneSample("0.01", now)))), migration.Pass, "value 0.01", 1},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}, migration.Error,
			"it redirects, which is not followed (HTTP status 307)", 1},
		"an echo": {func(w http.ResponseWriter, r *http.Request) {
			write(400, fmt.Sprintf(`{"status":"error","errorType":"bad_data","error":%q}`, r.Header.Get("Authorization")))(w, r)
		}, migration.Error, "query: bad_data: Bearer [redacted]", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				c.handler(w, r)
			})
			got := measureAt(t, Options{Secrets: &secrets{data: map[string]string{"token": "secret-token"}}}, about(5), withAuth(asked(server.URL, "q")), now)
			if got.Result != c.want || !strings.Contains(got.Detail, c.detail) || strings.Contains(got.Detail, "secret-token") {
				t.Errorf("%s %q, want %s %q", got.Result, got.Detail, c.want, c.detail)
			}
			if calls.Load() != c.calls || got.At.After(now) {
				t.Errorf("%d calls, at %s", calls.Load(), got.At)
			}
		})
	}
}

// TestDataOfTheStepBefore has a server send a value that is not old, and older than the step.
func TestDataOfTheStepBefore(t *testing.T) {
	now := zero.Add(20 * time.Minute)
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, oneSample("0.01", now.Add(-61*time.Second)))
	})
	for minute, want := range map[int]string{19: "NoData query: a value of 1m1s before, which is too old", 18: "Pass value 0.01: passWhen holds: value <= 0.02"} {
		got := measureAt(t, Options{}, about(minute), asked(server.URL, "q"), now)
		if text := string(got.Result) + " " + got.Detail; text != want {
			t.Errorf("of minute %d: %s", minute, text)
		}
	}
}

// TestQueryParameters looks at what a server is sent.
func TestQueryParameters(t *testing.T) {
	now := zero.Add(20*time.Minute + 700*time.Millisecond)
	var form url.Values
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		form = r.Form
		_, _ = io.WriteString(w, oneSample("0", now))
	})
	s := about(18)
	measureAt(t, Options{}, s, asked(server.URL, "q[$window]"), now)
	for name, want := range map[string]string{"query": "q[120s]", "time": fmt.Sprint(now.Unix()), "lookback_delta": "2m0s", "timeout": "10s"} {
		if got := form.Get(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// TestTimeout ends a query that takes too long, and asks no other one.
func TestTimeout(t *testing.T) {
	var calls atomic.Int32
	release := make(chan struct{})
	server := serve(t, func(http.ResponseWriter, *http.Request) {
		calls.Add(1)
		<-release
	})
	defer close(release)
	g := asked(server.URL, errorRatio)
	g.Prometheus.Timeout = &metav1.Duration{Duration: 100 * time.Millisecond}
	got := measureAt(t, Options{}, about(5), g, zero.Add(20*time.Minute))
	if got.Result != migration.Error || got.Detail != "query: no answer within 100ms" || calls.Load() != 1 {
		t.Errorf("%s %q, %d calls", got.Result, got.Detail, calls.Load())
	}
}

// TestAddresses refuses those at which no Prometheus is.
func TestAddresses(t *testing.T) {
	server := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("asked") })
	r := NewRunner(Options{})
	p := r.servers.Get(server.URL, promclient.Credentials{}, zero)
	_, err := p.Ask(t.Context(), promclient.Credentials{}, promclient.Question{Query: "q", At: zero, Timeout: time.Second})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1 is an address of this host or link, which is not asked") {
		t.Error(err)
	}
}
