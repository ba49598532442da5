// Nothing of it is built: `npm run test:k8s` reads its CRDs, to check the ScaledObjects of k8s/overlays/production.
module docket.dev/runtime/keda

go 1.26.0

require github.com/kedacore/keda/v2 v2.17.0
