package export

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// page is what Prometheus scrapes: GET /metrics, and nothing else.
type page struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}
}

// newPage listens. An address without a host is the loopback interface's: the figures of an
// isolation boundary are not for everybody.
func newPage(address string, from prometheus.Gatherer) (*page, error) {
	network, where := "tcp", address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, where = "unix", path
	} else {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("--metrics %q is no address; write 127.0.0.1:9464, :9464 or unix:PATH", address)
		}
		if host == "" {
			where = net.JoinHostPort("127.0.0.1", port)
		}
	}
	listener, err := net.Listen(network, where)
	if err != nil {
		return nil, err
	}
	if network == "unix" {
		if err := os.Chmod(where, 0o600); err != nil {
			return nil, errors.Join(err, listener.Close())
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(from, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 5 * time.Second}))
	p := &page{listener: listener, done: make(chan struct{}), server: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 15 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10,
	}}
	go func() { // ends with close
		defer close(p.done)
		_ = p.server.Serve(listener) // http.ErrServerClosed, or the page is gone and the runs go on
	}()
	return p, nil
}

func (p *page) address() string {
	if a := p.listener.Addr(); a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return "http://" + p.listener.Addr().String() + "/metrics"
}

// close ends requests that are under way, too.
func (p *page) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	err := p.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = p.server.Close()
	}
	<-p.done
	return err
}
