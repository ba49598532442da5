// Package health serves /healthz on one address. Dapr 1.14's own server takes a port only and listens on every interface.
package health

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/dapr/dapr/pkg/healthz"
)

// Serve answers 200 once every target of h is ready, 503 before, until ctx is done.
func Serve(h healthz.Healthz, address string, port int) func(context.Context) error {
	target := h.AddTarget()
	return func(ctx context.Context) error {
		mux := http.NewServeMux()
		mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
			if !h.IsReady() {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		})
		listener, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			return err
		}
		server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
		failed := make(chan error, 1)
		go func() { failed <- server.Serve(listener) }()
		target.Ready()
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			if err := server.Close(); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		}
	}
}
