/** What each route of both lines and of the cache is expected to ask of a caller: written by hand, beside the tables of the product. */
import type { Route } from '#kit/web/answers/route.ts'
import type { RouteReach, PageScope } from '#kit/web/answers/rules/rights.ts'

/** `need`: what a caller must be allowed (`upload`: that one upload); `reach`: how it keeps to the scope of a person. */
export interface Expectation {
  readonly need: PageScope | 'open' | 'upload'
  readonly reach: RouteReach | null
}

/** Who may ask, then each path with its methods. */
const SERVER = `
open:
  / GET
  /M/:mac GET
  /boot/:name GET
  /catalog.toml GET
  /docs/** GET
  /docs/api GET
  /grub/grub.cfg GET
  /healthz GET
  /imager.json GET
  /images GET
  /images/:name GET
  /m/:mac GET
  /openapi.json GET
  /pxe-bootstrap.ipxe GET
  /pxe/:mac GET
  /pxe/:mac.grub GET
  /pxe/:mac/booted/:token POST
  /pxe/:mac/done POST
  /pxe/:mac/first-boot GET POST
  /pxe/:mac/inventory POST
  /pxe/:mac/log POST
  /pxe/:mac/once/:ticket/:name GET
  /pxe/:mac/plan GET
  /pxe/:mac/progress POST
  /pxe/:mac/provision/:name GET
  /pxe/:mac/status POST
  /static/** GET
  /ui GET
  /ui/login GET POST
  /ui/login/openid GET
  /ui/login/openid/callback GET
  /ui/login/openid/finish GET
  /version GET
admin list:
  /boot-entries/:name PUT DELETE
  /first-boot/:name PUT DELETE
  /ui/boot-entries/:name/remove POST
  /ui/boot-entries/save POST
  /ui/first-boot POST
  /ui/first-boot/:name POST
  /ui/first-boot/:name/delete POST
  /ui/runs/remove POST
admin machine:
  /machines/:mac/power PUT DELETE
  /machines/:mac/power/certificate DELETE
  /machines/:mac/runs/:id DELETE
  /ui/machines/:mac/power POST
  /ui/machines/:mac/power/delete POST
  /ui/machines/:mac/power/networks POST
  /ui/machines/:mac/power/unpin POST
admin shared:
  /tokens POST
  /admin/cache/refresh POST
  /boot/:name PUT
  /boot/releases POST PUT DELETE
  /boot/releases/:tag DELETE
  /images/:name PUT
  /ui/boot/cancel-fetch POST
  /ui/boot/fetch-release POST
  /ui/boot/source POST
  /ui/cache POST
  /ui/images/remove POST
  /ui/netboot/cancel-fetch POST
  /ui/netboot/fetch-release POST
  /ui/netboot/take-built POST
  /ui/netboot/use-set POST
admin fleet:
  /power/credentials GET PUT DELETE
  /power/credentials/labels/:label PUT DELETE
  /power/import POST
  /tokens/:id DELETE
  /ui/backups POST
  /ui/backups/:id DELETE
  /ui/backups/:id/cancel POST
  /ui/backups/:id/delete POST
  /ui/backups/:id/download GET
  /ui/backups/:id/restore GET POST
  /ui/dashboard/setup POST
  /ui/dhcp/proxy POST
  /ui/dhcp/proxy-off POST
  /ui/notifications GET
  /ui/notifications/:id GET POST
  /ui/notifications/:id/again POST
  /ui/notifications/:id/pause POST
  /ui/notifications/:id/remove POST
  /ui/notifications/:id/resume POST
  /ui/notifications/:id/rules/:rule GET POST
  /ui/notifications/:id/rules/:rule/remove POST
  /ui/notifications/:id/test POST
  /ui/notifications/add/:kind GET POST
  /ui/people GET POST
  /ui/people/:id GET
  /ui/people/:id/block POST
  /ui/people/:id/password POST
  /ui/people/:id/remove POST
  /ui/people/:id/role POST
  /ui/people/:id/unblock POST
  /ui/people/add GET
  /ui/people/provider GET POST
  /ui/people/provider/switch POST
  /ui/people/provider/test GET
  /ui/settings GET
  /ui/settings/backup POST
  /ui/settings/config POST
  /ui/settings/config/edit POST
  /ui/settings/pxe-activate POST
  /ui/settings/pxe-deactivate POST
  /ui/settings/upstream POST
  /workers/backups POST DELETE
  /workers/backups/:id DELETE
  /workers/backups/:id/restore POST
flash list:
  /batches/:id/resume POST
  /batches/:id/retry POST
  /ui/batches/:id/resume POST
  /ui/batches/:id/retry POST
flash machine:
  /machines/:mac/capture POST DELETE
  /machines/:mac/flash POST
  /machines/:mac/once POST DELETE
  /ui/machines/:mac/do/cancel-capture POST
  /ui/machines/:mac/do/cancel-once POST
  /ui/machines/:mac/do/capture POST
  /ui/machines/:mac/do/flash POST
  /ui/machines/:mac/do/once POST
machines list:
  /batches/:id/disarm POST
  /batches/:id/pause POST
  /batches/:id/undo POST
  /events/:id/ack POST
  /events/ack POST
  /machines/bulk POST
  /ui/batches/:id/disarm POST
  /ui/batches/:id/pause POST
  /ui/batches/:id/undo POST
  /ui/events/acknowledge POST
  /ui/machines POST
  /ui/machines/bulk GET POST
  /ui/machines/file GET POST
  /ui/machines/file/apply POST
machines machine:
  /machines/:mac PUT DELETE
  /machines/:mac/provision/:name GET PUT DELETE
  /machines/:mac/undo POST
  /machines/:mac/workflows/:run/log GET
  /ui/machines/:mac POST
  /ui/machines/:mac/delete POST
  /ui/machines/:mac/do/boot-disk POST
  /ui/machines/:mac/do/disarm POST
  /ui/machines/:mac/do/first-boot POST
  /ui/machines/:mac/do/lock POST
  /ui/machines/:mac/do/refresh POST
  /ui/machines/:mac/do/unlock POST
  /ui/machines/:mac/provision POST
  /ui/machines/:mac/undo POST
machines fleet:
  /channels/:name PUT DELETE
  /ui/channels/:name/remove POST
  /ui/channels/save POST
own shared:
  /ui/api-calls POST
  /ui/account GET
  /ui/account/password POST
  /ui/account/tokens POST
  /ui/account/tokens/:id/revoke POST
  /ui/keys GET POST
  /ui/logout POST
  /ui/theme POST
power list:
  /power/bulk POST
  /ui/batches/power/:id/stop POST
power machine:
  /machines/:mac/power POST
  /ui/machines/:mac/do/power POST
read list:
  /batches GET
  /batches/:id GET
  /boot-entries GET
  /boot-entries/:name GET
  /events GET
  /events.csv GET
  /events.json GET
  /events/machines GET
  /first-boot GET
  /first-boot/:name GET
  /machines GET
  /machines.csv GET
  /runs GET
  /runs.csv GET
  /runs.json GET
  /ui/batches GET
  /ui/batches/:id GET
  /ui/boot-entries GET
  /ui/channels GET
  /ui/dashboard GET
  /ui/events GET
  /ui/find GET
  /ui/first-boot GET
  /ui/first-boot/:name GET
  /ui/machines GET
  /ui/machines/columns POST
  /ui/machines/labels GET
  /ui/machines/searches POST
  /ui/machines/wall GET
  /ui/runs GET
  /ui/runs/compare GET
read machine:
  /machines/:mac GET
  /machines/:mac/disks.json GET
  /machines/:mac/first-boot GET
  /machines/:mac/lshw.json GET
  /machines/:mac/power GET
  /machines/:mac/runs GET
  /machines/:mac/runs/:id GET
  /machines/:mac/runs/:id/log GET
  /machines/:mac/workflows GET
  /ui/machines/:mac GET
  /ui/machines/:mac/runs/:id GET
  /ui/machines/:mac/timeline GET
  /ui/machines/:mac/workflows/:run GET
read shared:
  /tokens GET
  /boot/releases GET
  /channels GET
  /ui/boot GET
  /ui/cache GET
  /ui/cache/back GET
  /ui/cache/frame GET
  /ui/dhcp GET
  /ui/images GET
  /ui/netboot GET
  /ui/netboot/tftp GET
read fleet:
  /channels/:name GET
  /metrics GET
  /ui/backups GET
  /workers/backups GET
`

const CACHE = `
open:
  / GET
  /b/:token GET
  /b/:token/** GET
  /blob GET
  /catalog GET
  /catalog/boot/:sha256 GET
  /files/:name GET
  /healthz GET
  /imager.json GET
  /static/** GET
  /ui GET
  /ui/login GET POST
  /version GET
upload:
  /captures POST
  /captures/:id GET PATCH
  /captures/:id/finish POST
admin fleet:
  /captures GET
  /captures/:id DELETE
  /captures/:id/accept POST
  /captures/tokens POST
  /catalog/entries POST DELETE
  /catalog/entries/:name DELETE
  /catalog/entries/:name/cancel POST
  /catalog/entries/:name/download POST
  /pins POST
  /ui/add POST
  /ui/cancel POST
  /ui/capture/accept POST
  /ui/capture/reject POST
  /ui/discard POST
  /ui/fetch POST
  /ui/remove POST
  /uploads GET POST
  /uploads/:id GET PATCH DELETE
  /uploads/:id/complete POST
own shared:
  /ui/account GET
  /ui/find GET
  /ui/keys GET POST
  /ui/logout POST
  /ui/theme POST
read list:
  /ui/capture GET
  /ui/dashboard GET
read shared:
  /ui/remove GET
`

const NEEDS = ['open', 'upload', 'own', 'read', 'machines', 'flash', 'power', 'admin'] as const
const REACHES = ['machine', 'list', 'shared', 'fleet'] as const

function parseTable(table: string): ReadonlyMap<string, Expectation> {
  const found = new Map<string, Expectation>()
  let expected: Expectation | null = null
  for (const line of table.split('\n').filter((each) => each.trim() !== '')) {
    if (line.startsWith('  ')) {
      const [path = '', ...methods] = line.trim().split(' ')
      for (const method of methods) if (expected !== null) found.set(`${method} ${path}`, expected)
      continue
    }
    const [said, by] = line.slice(0, -1).split(' ')
    const need = NEEDS.find((each) => each === said)
    const reach = REACHES.find((each) => each === by) ?? null
    const isOpen = need === 'open' || need === 'upload'
    if (need === undefined || (reach === null) !== isOpen) throw new Error(line)
    expected = { need, reach }
  }
  return found
}

export const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>) => `${method} ${path}`

/** By the names of the routes, `GET /machines`. */
export const EXPECTED = { server: parseTable(SERVER), cache: parseTable(CACHE) } as const

/** Lists routes without an expectation, and expectations without a route. */
export function listUnmatched(
  expected: ReadonlyMap<string, Expectation>,
  routes: readonly Route[],
): readonly string[] {
  const known = new Set(routes.map(nameOf))
  return [
    ...[...known].filter((name) => !expected.has(name)),
    ...[...expected.keys()].filter((name) => !known.has(name)),
  ]
}
