/*
Copyright 2023 The Dapr Authors
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

// Command placement is Dapr's actor placement service. It is its app/app.go of 1.14.0 (Apache-2.0) with one difference: the listen
// addresses of the flags are used, which 1.14.0 parses and forgets, so that nothing listens beyond this machine.
package main

import (
	"math"
	"os"

	"docket.dev/runtime/dapr/internal/health"
	"github.com/dapr/dapr/cmd/placement/options"
	"github.com/dapr/dapr/pkg/buildinfo"
	"github.com/dapr/dapr/pkg/healthz"
	"github.com/dapr/dapr/pkg/metrics"
	"github.com/dapr/dapr/pkg/modes"
	"github.com/dapr/dapr/pkg/placement"
	"github.com/dapr/dapr/pkg/placement/monitoring"
	"github.com/dapr/dapr/pkg/placement/raft"
	"github.com/dapr/dapr/pkg/security"
	"github.com/dapr/kit/concurrency"
	"github.com/dapr/kit/logger"
	"github.com/dapr/kit/ptr"
	"github.com/dapr/kit/signals"
)

var log = logger.NewLogger("dapr.placement")

func main() {
	opts := options.New(os.Args[1:])

	// Apply options to all loggers.
	if err := logger.ApplyOptionsToLoggers(&opts.Logger); err != nil {
		log.Fatal(err)
	}

	log.Infof("Starting Dapr Placement Service -- version %s -- commit %s", buildinfo.Version(), buildinfo.Commit())
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

	err := monitoring.InitMetrics()
	if err != nil {
		log.Fatal(err)
	}

	ctx := signals.Context()
	secProvider, err := security.New(ctx, security.Options{
		SentryAddress:           opts.SentryAddress,
		ControlPlaneTrustDomain: opts.TrustDomain,
		ControlPlaneNamespace:   security.CurrentNamespace(),
		TrustAnchorsFile:        &opts.TrustAnchorsFile,
		AppID:                   "dapr-placement",
		MTLSEnabled:             opts.TLSEnabled,
		Mode:                    modes.DaprMode(opts.Mode),
		Healthz:                 healthz,
	})
	if err != nil {
		log.Fatal(err)
	}

	// Start Raft cluster.
	raftServer := raft.New(raft.Options{
		ID:                opts.RaftID,
		InMem:             opts.RaftInMemEnabled,
		Peers:             opts.RaftPeers,
		LogStorePath:      opts.RaftLogStorePath,
		ReplicationFactor: int64(opts.ReplicationFactor),
		MinAPILevel:       uint32(opts.MinAPILevel),
		MaxAPILevel:       uint32(opts.MaxAPILevel),
		Healthz:           healthz,
		Security:          secProvider,
	})
	if raftServer == nil {
		log.Fatal("Failed to create raft server.")
	}

	placementOpts := placement.PlacementServiceOpts{
		Port:          opts.PlacementPort,
		ListenAddress: opts.PlacementListenAddress,
		RaftNode:      raftServer,
		SecProvider:   secProvider,
		Healthz:       healthz,
	}
	if opts.MinAPILevel >= 0 && opts.MinAPILevel < math.MaxInt32 {
		placementOpts.MinAPILevel = uint32(opts.MinAPILevel)
	}
	if opts.MaxAPILevel >= 0 && opts.MaxAPILevel < math.MaxInt32 {
		placementOpts.MaxAPILevel = ptr.Of(uint32(opts.MaxAPILevel))
	}
	apiServer := placement.NewPlacementService(placementOpts)
	err = concurrency.NewRunnerManager(
		secProvider.Run,
		raftServer.StartRaft,
		metricsExporter.Start,
		health.Serve(healthz, opts.HealthzListenAddress, opts.HealthzPort),
		apiServer.MonitorLeadership,
		apiServer.Start,
	).Run(ctx)
	if err != nil {
		log.Fatal(err)
	}

	log.Info("Placement service shut down gracefully")
}
