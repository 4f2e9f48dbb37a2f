/** How each route of the API that is not open keeps to the scope of who asks, for both lines. */
import type { RouteReach } from '../../../kit/web/answers/rules/reach.ts'

/** The paths as the route table writes them. A route that is missing here takes somebody without a scope. */
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
  // It reaches machines outside of any scope.
  '/channels/:name': 'whole',
  '/first-boot': 'list',
  '/first-boot/:name': 'list',
  '/boot/:name': 'shared',
  '/boot/releases': 'shared',
  '/boot/releases/:tag': 'shared',
  '/admin/cache/refresh': 'shared',
  // People see their own; who makes one by the API has no scope.
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

/** How a route of the API keeps to the scope of who asks. */
export const findApiReach = (path: string): RouteReach => API_REACH[path] ?? 'whole'
