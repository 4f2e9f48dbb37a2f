/** What the settings of a machine server say of callers. */
import type { ServerSettings } from '#kit/config/rules/shared-settings.ts'
import type { WebSettings } from '#kit/web/answers/caller.ts'

export const toWebSettings = ({ server, pxe, tuning, metrics }: ServerSettings): WebSettings => ({
  publicUrl: server.public_url || null,
  allowedHosts: server.allowed_hosts,
  trustedProxies: server.trusted_proxies,
  discoveriesPerMinute: pxe.discovery_per_minute,
  mostUnassigned: pxe.discovery_rows,
  uploadMostBytes: tuning.max_upload_bytes,
  openMetrics: metrics.open,
})
