/** Owns: what spans and numbers say of the process they come from. OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME win. */
import { defaultResource, detectResources, envDetector, resourceFromAttributes, type Resource } from "@opentelemetry/resources";

export function resourceOf(app: string): Resource {
  return defaultResource().merge(resourceFromAttributes({ "service.name": app, "service.namespace": "docket", "process.pid": process.pid })).merge(detectResources({ detectors: [envDetector] }));
}
