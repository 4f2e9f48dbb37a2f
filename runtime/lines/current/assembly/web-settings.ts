/** Current line: maps the configuration to the settings of the shared server, read at each use. */
import type { WebSettings } from '../../../web/http/caller.ts'
import type { Settings } from '../rules/settings.ts'

export const toWebSettings = ({ server, pxe, tuning, metrics }: Settings): WebSettings => ({
  publicUrl: server.public_url || null,
  allowedHosts: server.allowed_hosts,
  trustedProxies: server.trusted_proxies,
  discoveriesPerMinute: pxe.discovery_per_minute,
  mostUnassigned: pxe.discovery_rows,
  uploadMostBytes: tuning.max_upload_bytes,
  openMetrics: metrics.open,
})
