/*
Copyright 2024 The Dapr Authors
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at
    http://www.apache.org/licenses/LICENSE-2.0
Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Command scheduler is Dapr's scheduler service (durable reminders). It is its app/app.go of 1.14.0 (Apache-2.0) with one difference: the
// listen addresses of the flags are used for health and metrics too, which 1.14.0 parses and forgets.
package main

import (
	"context"
	"os"

	"docket.dev/runtime/dapr/internal/health"
	"github.com/dapr/dapr/cmd/scheduler/options"
	"github.com/dapr/dapr/pkg/buildinfo"
	"github.com/dapr/dapr/pkg/healthz"
	"github.com/dapr/dapr/pkg/metrics"
	"github.com/dapr/dapr/pkg/modes"
	"github.com/dapr/dapr/pkg/placement/monitoring"
	"github.com/dapr/dapr/pkg/scheduler/server"
	"github.com/dapr/dapr/pkg/security"
	"github.com/dapr/kit/concurrency"
	"github.com/dapr/kit/logger"
	"github.com/dapr/kit/signals"
)

var log = logger.NewLogger("dapr.scheduler")

const appID = "dapr-scheduler"

func main() {
	opts, err := options.New(os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}

	// Apply options to all loggers.
	if lerr := logger.ApplyOptionsToLoggers(&opts.Logger); lerr != nil {
		log.Fatal(lerr)
	}

	log.Infof("Starting Dapr Scheduler Service -- version %s -- commit %s", buildinfo.Version(), buildinfo.Commit())
	log.Infof("Log level set to: %s", opts.Logger.OutputLevel)

	healthz := healthz.New()

	metricsExporter := metrics.New(metrics.Options{
		Log:           log,
		Enabled:       opts.Metrics.Enabled(),
		Namespace:     metrics.DefaultMetricNamespace,
		Port:          opts.Metrics.Port(),
		ListenAddress: opts.HealthzListenAddress,
		Healthz:       healthz,
	})

	if merr := monitoring.InitMetrics(); merr != nil {
		log.Fatal(merr)
	}

	ctx := signals.Context()
	secProvider, err := security.New(ctx, security.Options{
		SentryAddress:           opts.SentryAddress,
		ControlPlaneTrustDomain: opts.TrustDomain,
		ControlPlaneNamespace:   security.CurrentNamespace(),
		TrustAnchorsFile:        opts.TrustAnchorsFile,
		AppID:                   appID,
		MTLSEnabled:             opts.TLSEnabled,
		Mode:                    modes.DaprMode(opts.Mode),
		Healthz:                 healthz,
	})
	if err != nil {
		log.Fatal(err)
	}

	err = concurrency.NewRunnerManager(
		health.Serve(healthz, opts.HealthzListenAddress, opts.HealthzPort),
		metricsExporter.Start,
		secProvider.Run,
		func(ctx context.Context) error {
			secHandler, serr := secProvider.Handler(ctx)
			if serr != nil {
				return serr
			}

			server, serr := server.New(server.Options{
				Port:          opts.Port,
				ListenAddress: opts.ListenAddress,
				Mode:          modes.DaprMode(opts.Mode),
				Security:      secHandler,
				Healthz:       healthz,

				DataDir:                 opts.EtcdDataDir,
				ReplicaCount:            opts.ReplicaCount,
				ReplicaID:               opts.ReplicaID,
				EtcdID:                  opts.ID,
				EtcdInitialPeers:        opts.EtcdInitialPeers,
				EtcdClientPorts:         opts.EtcdClientPorts,
				EtcdSpaceQuota:          opts.EtcdSpaceQuota,
				EtcdCompactionMode:      opts.EtcdCompactionMode,
				EtcdCompactionRetention: opts.EtcdCompactionRetention,
				EtcdClientHTTPPorts:     opts.EtcdClientHTTPPorts,
			})
			if serr != nil {
				return serr
			}

			return server.Run(ctx)
		},
	).Run(ctx)
	if err != nil {
		log.Fatalf("error running scheduler: %v", err)
	}

	log.Info("Scheduler service shut down gracefully")
}
