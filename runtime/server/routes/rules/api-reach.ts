/** How each route of the API that is not open keeps to the scope of who asks, for both lines. */
import {
  type RouteReach,
  type PageScope,
  sees,
  type Bounds,
} from '#kit/web/answers/rules/rights.ts'

/** Paths as in the route table. A route missing here refuses everybody with a scope. */
export const API_REACH: Readonly<Record<string, RouteReach>> = {
  '/machines': 'list',
  '/machines.csv': 'list',
  '/machines/bulk': 'list',
  '/machines/:mac': 'machine',
  '/machines/:mac/capture': 'machine',
  '/machines/:mac/disks.json': 'machine',
  '/machines/:mac/first-boot': 'machine',
  '/machines/:mac/flash': 'machine',
  '/machines/:mac/lshw.json': 'machine',
  '/machines/:mac/power': 'machine',
  '/machines/:mac/power/certificate': 'machine',
  '/machines/:mac/runs': 'machine',
  '/machines/:mac/runs/:id': 'machine',
  '/machines/:mac/runs/:id/log': 'machine',
  '/machines/:mac/undo': 'machine',
  '/batches': 'list',
  '/batches/:id': 'list',
  '/batches/:id/pause': 'list',
  '/batches/:id/resume': 'list',
  '/batches/:id/disarm': 'list',
  '/batches/:id/undo': 'list',
  '/batches/:id/retry': 'list',
  '/events': 'list',
  '/events.csv': 'list',
  '/events.json': 'list',
  '/events/:id/ack': 'list',
  '/events/ack': 'list',
  '/events/machines': 'list',
  '/runs': 'list',
  '/runs.csv': 'list',
  '/runs.json': 'list',
  '/power/bulk': 'list',
  '/power/credentials': 'whole',
  '/power/credentials/labels/:label': 'whole',
  '/power/import': 'whole',
  '/channels': 'shared',
  // Channels reach machines outside of any scope.
  '/channels/:name': 'whole',
  '/first-boot': 'list',
  '/first-boot/:name': 'list',
  '/boot/:name': 'shared',
  '/boot/releases': 'shared',
  '/boot/releases/:tag': 'shared',
  '/admin/cache/refresh': 'shared',
  // People see their own; a program that makes one has no scope.
  '/tokens': 'shared',
  '/tokens/:id': 'whole',
  '/metrics': 'whole',
  '/workers/backups': 'whole',
  '/workers/backups/:id': 'whole',
  '/workers/backups/:id/restore': 'whole',
  '/ui/backups/:id': 'whole',
  '/ui/backups/:id/download': 'whole',

  // The earlier line alone.
  '/images/:name': 'shared',
  '/machines/:mac/provision/:name': 'machine',
  '/machines/:mac/workflows': 'machine',
  '/machines/:mac/workflows/:run/log': 'machine',
}

export const findApiReach = (path: string): RouteReach => API_REACH[path] ?? 'whole'

// What each page and form requires of who asks, for both lines; a route of the API says its scope itself.

interface PageRow {
  readonly GET?: PageScope
  readonly POST?: PageScope
  readonly reach: RouteReach
}

/** Paths as in the route table. Nothing that is missing here is open. */
export const PAGE_GATE: Readonly<Record<string, PageRow>> = {
  '/ui/theme': { POST: 'own', reach: 'shared' },
  '/ui/logout': { POST: 'own', reach: 'shared' },
  '/ui/keys': { GET: 'own', POST: 'own', reach: 'shared' },
  // Results are limited to pages and forms that are open to the requester.
  '/ui/find': { GET: 'read', reach: 'list' },
  '/ui/account': { GET: 'own', reach: 'shared' },
  '/ui/account/password': { POST: 'own', reach: 'shared' },
  '/ui/account/tokens': { POST: 'own', reach: 'shared' },
  '/ui/account/tokens/:id/revoke': { POST: 'own', reach: 'shared' },
  '/ui/people': { GET: 'admin', POST: 'admin', reach: 'whole' },
  '/ui/people/add': { GET: 'admin', reach: 'whole' },
  '/ui/people/:id': { GET: 'admin', reach: 'whole' },
  '/ui/people/:id/role': { POST: 'admin', reach: 'whole' },
  '/ui/people/:id/password': { POST: 'admin', reach: 'whole' },
  '/ui/people/:id/block': { POST: 'admin', reach: 'whole' },
  '/ui/people/:id/unblock': { POST: 'admin', reach: 'whole' },
  '/ui/people/:id/remove': { POST: 'admin', reach: 'whole' },
  '/ui/notifications': { GET: 'admin', reach: 'whole' },
  '/ui/notifications/add/:kind': { GET: 'admin', POST: 'admin', reach: 'whole' },
  '/ui/notifications/:id': { GET: 'admin', POST: 'admin', reach: 'whole' },
  '/ui/notifications/:id/test': { POST: 'admin', reach: 'whole' },
  '/ui/notifications/:id/pause': { POST: 'admin', reach: 'whole' },
  '/ui/notifications/:id/resume': { POST: 'admin', reach: 'whole' },
  '/ui/notifications/:id/again': { POST: 'admin', reach: 'whole' },
  '/ui/notifications/:id/remove': { POST: 'admin', reach: 'whole' },
  '/ui/notifications/:id/rules/:rule': { GET: 'admin', POST: 'admin', reach: 'whole' },
  '/ui/notifications/:id/rules/:rule/remove': { POST: 'admin', reach: 'whole' },

  '/ui/dashboard': { GET: 'read', reach: 'list' },
  '/ui/dashboard/setup': { POST: 'admin', reach: 'whole' },
  '/ui/machines': { GET: 'read', POST: 'machines', reach: 'list' },
  '/ui/machines/labels': { GET: 'read', reach: 'list' },
  '/ui/machines/wall': { GET: 'read', reach: 'list' },
  '/ui/machines/columns': { POST: 'read', reach: 'list' },
  '/ui/machines/searches': { POST: 'read', reach: 'list' },
  '/ui/machines/bulk': { POST: 'machines', reach: 'list' },
  '/ui/machines/file': { GET: 'machines', POST: 'machines', reach: 'list' },
  '/ui/machines/file/apply': { POST: 'machines', reach: 'list' },
  '/ui/machines/:mac': { GET: 'read', POST: 'machines', reach: 'machine' },
  '/ui/machines/:mac/delete': { POST: 'machines', reach: 'machine' },
  // An undo arms nothing.
  '/ui/machines/:mac/undo': { POST: 'machines', reach: 'machine' },
  '/ui/machines/:mac/do/flash': { POST: 'flash', reach: 'machine' },
  '/ui/machines/:mac/do/capture': { POST: 'flash', reach: 'machine' },
  '/ui/machines/:mac/do/cancel-capture': { POST: 'flash', reach: 'machine' },
  '/ui/machines/:mac/do/boot-disk': { POST: 'machines', reach: 'machine' },
  '/ui/machines/:mac/do/disarm': { POST: 'machines', reach: 'machine' },
  '/ui/machines/:mac/do/first-boot': { POST: 'machines', reach: 'machine' },
  '/ui/machines/:mac/do/refresh': { POST: 'machines', reach: 'machine' },
  '/ui/machines/:mac/do/lock': { POST: 'machines', reach: 'machine' },
  '/ui/machines/:mac/do/unlock': { POST: 'machines', reach: 'machine' },
  '/ui/machines/:mac/do/power': { POST: 'power', reach: 'machine' },
  // The address and the credentials of a BMC.
  '/ui/machines/:mac/power': { POST: 'admin', reach: 'machine' },
  '/ui/machines/:mac/power/delete': { POST: 'admin', reach: 'machine' },
  '/ui/machines/:mac/power/unpin': { POST: 'admin', reach: 'machine' },
  '/ui/machines/:mac/runs/:id': { GET: 'read', reach: 'machine' },
  '/ui/machines/:mac/timeline': { GET: 'read', reach: 'machine' },
  '/ui/runs': { GET: 'read', reach: 'list' },
  '/ui/runs/compare': { GET: 'read', reach: 'list' },
  '/ui/runs/remove': { POST: 'admin', reach: 'list' },
  '/ui/batches': { GET: 'read', reach: 'list' },
  '/ui/batches/:id': { GET: 'read', reach: 'list' },
  '/ui/batches/:id/pause': { POST: 'machines', reach: 'list' },
  '/ui/batches/:id/disarm': { POST: 'machines', reach: 'list' },
  '/ui/batches/:id/undo': { POST: 'machines', reach: 'list' },
  '/ui/batches/:id/resume': { POST: 'flash', reach: 'list' },
  '/ui/batches/:id/retry': { POST: 'flash', reach: 'list' },
  '/ui/batches/power/:id/stop': { POST: 'power', reach: 'list' },
  '/ui/events': { GET: 'read', reach: 'list' },
  '/ui/events/acknowledge': { POST: 'machines', reach: 'list' },

  '/ui/first-boot': { GET: 'read', POST: 'admin', reach: 'list' },
  '/ui/first-boot/:name': { GET: 'read', POST: 'admin', reach: 'list' },
  '/ui/first-boot/:name/delete': { POST: 'admin', reach: 'list' },
  // Channels reach machines outside of any scope.
  '/ui/channels': { GET: 'read', reach: 'list' },
  '/ui/channels/save': { POST: 'machines', reach: 'whole' },
  '/ui/channels/:name/remove': { POST: 'machines', reach: 'whole' },
  '/ui/cache': { GET: 'read', POST: 'admin', reach: 'shared' },
  '/ui/cache/back': { GET: 'read', reach: 'shared' },
  '/ui/dhcp': { GET: 'read', reach: 'shared' },
  '/ui/netboot': { GET: 'read', reach: 'shared' },
  '/ui/netboot/fetch-release': { POST: 'admin', reach: 'shared' },
  '/ui/netboot/cancel-fetch': { POST: 'admin', reach: 'shared' },
  '/ui/netboot/use-set': { POST: 'admin', reach: 'shared' },
  '/ui/backups': { GET: 'read', POST: 'admin', reach: 'whole' },
  '/ui/backups/:id/cancel': { POST: 'admin', reach: 'whole' },
  '/ui/backups/:id/delete': { POST: 'admin', reach: 'whole' },
  '/ui/backups/:id/restore': { GET: 'admin', POST: 'admin', reach: 'whole' },
  '/ui/settings': { GET: 'admin', reach: 'whole' },
  '/ui/settings/upstream': { POST: 'admin', reach: 'whole' },
  '/ui/settings/backup': { POST: 'admin', reach: 'whole' },
  '/ui/settings/config': { POST: 'admin', reach: 'whole' },
  '/ui/settings/config/edit': { POST: 'admin', reach: 'whole' },

  // The earlier line alone.
  '/ui/machines/:mac/provision': { POST: 'machines', reach: 'machine' },
  '/ui/machines/:mac/workflows/:run': { GET: 'read', reach: 'machine' },
  '/ui/images': { GET: 'read', reach: 'shared' },
  '/ui/images/remove': { POST: 'admin', reach: 'shared' },
  '/ui/boot': { GET: 'read', reach: 'shared' },
  '/ui/boot/fetch-release': { POST: 'admin', reach: 'shared' },
  '/ui/boot/cancel-fetch': { POST: 'admin', reach: 'shared' },
  '/ui/settings/pxe-activate': { POST: 'admin', reach: 'whole' },
  '/ui/settings/pxe-deactivate': { POST: 'admin', reach: 'whole' },
}

/** All rights where the table says nothing. */
export function findPageScope(method: string, path: string): PageScope {
  const row = PAGE_GATE[path]
  return (method === 'GET' ? row?.GET : method === 'POST' ? row?.POST : null) ?? 'admin'
}

/** All machines where the table says nothing. */
export const findPageReach = (path: string): RouteReach => PAGE_GATE[path]?.reach ?? 'whole'

/** False for what the API has under `/ui`. */
export const isPagePath = (path: string): boolean => Object.hasOwn(PAGE_GATE, path)

// Decides what somebody with bounds may edit: what they see, and no label that is a scope or has a password.

export interface EditBounds<M> {
  /** Machines they do not see do not exist for them. */
  sees(machine: M): boolean
  readonly adds: boolean
  /** `before` null: a new machine. Null: allowed. */
  refuse(before: M | null, after: M): string | null
}

interface EditBoundsDependencies<M> {
  labelsOf(machine: M): readonly string[]
  /** Labels that are scopes of people now, or that their provider gives them. */
  listScopeLabels(): readonly string[]
  listSecretLabels(): readonly string[]
}

/** People with a scope add no machine: a new one has no label yet. */
export function createEditBounds<M>(
  { reach, administrates }: Bounds,
  { labelsOf, listScopeLabels, listSecretLabels }: EditBoundsDependencies<M>,
): EditBounds<M> {
  return {
    sees: (machine) => sees(reach, labelsOf(machine)),
    adds: reach === null,
    refuse(before, after) {
      if (administrates) return null
      const [former, next] = [before === null ? [] : labelsOf(before), labelsOf(after)]
      if (former === next) return null
      const [scopes, secrets] = [new Set(listScopeLabels()), new Set(listSecretLabels())]
      for (const label of [...former, ...next]) {
        if (former.includes(label) === next.includes(label)) continue
        if (scopes.has(label) || reach?.includes(label) === true) return fixed(label, A_SCOPE)
        if (secrets.has(label)) return fixed(label, A_SECRET)
      }
      return null
    },
  }
}

const A_SCOPE = 'is the scope of people'
const A_SECRET = 'has the password of BMCs'
const fixed = (label: string, why: string): string =>
  `The label ${label} ${why}: it takes the role administrate to give it to a machine or take it away.`
