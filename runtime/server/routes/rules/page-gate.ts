/** What each page and form requires of who asks, for both lines; a route of the API says its scope itself. */
import type { PageScope } from '../../../kit/web/answers/rules/rights.ts'

interface PageRow {
  readonly GET?: PageScope
  readonly POST?: PageScope
}

/** The paths of pages and their forms, as the route table writes them. Nothing that is missing here is open. */
export const PAGE_GATE: Readonly<Record<string, PageRow>> = {
  '/ui/theme': { POST: 'own' },
  '/ui/logout': { POST: 'own' },
  '/ui/keys': { GET: 'own', POST: 'own' },
  // What it finds is limited to the pages and forms that are open to who asks.
  '/ui/find': { GET: 'read' },
  '/ui/account': { GET: 'own' },
  '/ui/account/password': { POST: 'own' },
  '/ui/account/tokens': { POST: 'own' },
  '/ui/account/tokens/:id/revoke': { POST: 'own' },
  '/ui/people': { GET: 'admin', POST: 'admin' },
  '/ui/people/:id/role': { POST: 'admin' },
  '/ui/people/:id/password': { POST: 'admin' },
  '/ui/people/:id/block': { POST: 'admin' },
  '/ui/people/:id/unblock': { POST: 'admin' },
  '/ui/people/:id/remove': { POST: 'admin' },

  '/ui/dashboard': { GET: 'read' },
  '/ui/dashboard/setup': { POST: 'admin' },
  '/ui/machines': { GET: 'read', POST: 'machines' },
  '/ui/machines/labels': { GET: 'read' },
  '/ui/machines/wall': { GET: 'read' },
  '/ui/machines/columns': { POST: 'read' },
  '/ui/machines/searches': { POST: 'read' },
  '/ui/machines/bulk': { POST: 'machines' },
  '/ui/machines/:mac': { GET: 'read', POST: 'machines' },
  '/ui/machines/:mac/delete': { POST: 'machines' },
  // It arms nothing, whatever it undoes.
  '/ui/machines/:mac/undo': { POST: 'machines' },
  '/ui/machines/:mac/do/flash': { POST: 'flash' },
  '/ui/machines/:mac/do/capture': { POST: 'flash' },
  '/ui/machines/:mac/do/cancel-capture': { POST: 'flash' },
  '/ui/machines/:mac/do/boot-disk': { POST: 'machines' },
  '/ui/machines/:mac/do/disarm': { POST: 'machines' },
  '/ui/machines/:mac/do/first-boot': { POST: 'machines' },
  '/ui/machines/:mac/do/refresh': { POST: 'machines' },
  '/ui/machines/:mac/do/lock': { POST: 'machines' },
  '/ui/machines/:mac/do/unlock': { POST: 'machines' },
  '/ui/machines/:mac/do/power': { POST: 'power' },
  // Where a BMC is and what opens it.
  '/ui/machines/:mac/power': { POST: 'admin' },
  '/ui/machines/:mac/power/delete': { POST: 'admin' },
  '/ui/machines/:mac/power/unpin': { POST: 'admin' },
  '/ui/machines/:mac/runs/:id': { GET: 'read' },
  '/ui/machines/:mac/timeline': { GET: 'read' },
  '/ui/runs': { GET: 'read' },
  '/ui/runs/compare': { GET: 'read' },
  '/ui/runs/remove': { POST: 'admin' },
  '/ui/batches': { GET: 'read' },
  '/ui/batches/:id': { GET: 'read' },
  '/ui/batches/:id/pause': { POST: 'machines' },
  '/ui/batches/:id/disarm': { POST: 'machines' },
  '/ui/batches/:id/undo': { POST: 'machines' },
  '/ui/batches/:id/resume': { POST: 'flash' },
  '/ui/batches/:id/retry': { POST: 'flash' },
  '/ui/events': { GET: 'read' },
  '/ui/events/acknowledge': { POST: 'machines' },

  '/ui/first-boot': { GET: 'read', POST: 'admin' },
  '/ui/first-boot/:name': { GET: 'read', POST: 'admin' },
  '/ui/first-boot/:name/delete': { POST: 'admin' },
  '/ui/cache': { GET: 'read', POST: 'admin' },
  '/ui/cache/back': { GET: 'read' },
  '/ui/netboot': { GET: 'read' },
  '/ui/netboot/fetch-release': { POST: 'admin' },
  '/ui/netboot/cancel-fetch': { POST: 'admin' },
  '/ui/netboot/use-set': { POST: 'admin' },
  '/ui/backups': { GET: 'read', POST: 'admin' },
  '/ui/backups/:id/cancel': { POST: 'admin' },
  '/ui/backups/:id/delete': { POST: 'admin' },
  '/ui/backups/:id/restore': { GET: 'admin', POST: 'admin' },
  '/ui/settings': { GET: 'admin' },
  '/ui/settings/upstream': { POST: 'admin' },
  '/ui/settings/backup': { POST: 'admin' },
  '/ui/settings/config': { POST: 'admin' },
  '/ui/settings/config/edit': { POST: 'admin' },

  // The earlier line alone.
  '/ui/machines/:mac/provision': { POST: 'machines' },
  '/ui/machines/:mac/workflows/:run': { GET: 'read' },
  '/ui/images': { GET: 'read' },
  '/ui/boot': { GET: 'read' },
  '/ui/boot/fetch-release': { POST: 'admin' },
  '/ui/boot/cancel-fetch': { POST: 'admin' },
  '/ui/settings/pxe-activate': { POST: 'admin' },
  '/ui/settings/pxe-deactivate': { POST: 'admin' },
}

/** What a page or form requires; all rights where the table says nothing. */
export function findPageScope(method: string, path: string): PageScope {
  const row = PAGE_GATE[path]
  return (method === 'GET' ? row?.GET : method === 'POST' ? row?.POST : null) ?? 'admin'
}
