/** `/workers/backups`: creates, lists, cancels, downloads, removes and restores backups. */
import { z } from 'zod'
import { getRouterParam, type H3Event } from 'h3'
import { isBackupId } from '#fleet/backup/rules/backup.ts'
import type { BackupJob } from '#fleet/backup/backup-job.ts'
import type { Backups, BackupDownload } from '#fleet/backup/backups.ts'
import type { StoredBackup } from '#fleet/backup/backup-store.ts'
import { isOver } from '#kit/host/jobs.ts'
import { json, streamOf, answer, type Answer } from '#kit/web/answers/answers.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Site } from '#server/routes/site.ts'
import { documentObject, type Route } from '#kit/web/answers/route.ts'
import { checked, renderSchema } from '#kit/web/answers/checked.ts'

/** An absent body is an empty one: a backup by hand. */
const BackupRequestSchema = z.strictObject({
  trigger: z.enum(['manual', 'scheduled']).default('manual'),
})

/** `place`: shown to clients; no path of this host. */
interface BackupRouteDependencies {
  readonly backups: Backups
  place(): string
}

export const backupRoutes = (site: Site, parts: BackupRouteDependencies): readonly Route[] => [
  ...jobRoutes(site, parts),
  ...storedRoutes(site, parts),
]

function jobRoutes({ by }: Site, { backups, place }: BackupRouteDependencies): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/workers/backups',
      access: 'read',
      doc: documentObject('Backups of this process, and all that can be restored'),
      handle: async () =>
        json({
          backups_root: place(),
          max_parallel: 1,
          backups: backups.jobs(),
          stored: (await backups.list()).map(toWire),
          restoring: backups.restoring(),
        }),
    },
    {
      method: 'POST',
      path: '/workers/backups',
      access: 'admin',
      takes: 'json',
      doc: {
        summary: 'Starts a backup',
        body: renderSchema(BackupRequestSchema, 'input'),
        answers: { 202: { type: 'object' } },
      },
      async handle(event, body) {
        const { trigger } = checked(BackupRequestSchema, body ?? {})
        return json(await backups.start(trigger, by(event)), 202)
      },
    },
    {
      method: 'DELETE',
      path: '/workers/backups',
      access: 'admin',
      doc: documentObject('Cancels every backup that is queued or running'),
      async handle(event) {
        const active = backups.jobs().filter((job) => !isOver(job))
        const cancel = (job: BackupJob) => backups.cancel(job.backup_id, by(event))
        return json({ cancelled: await Promise.all(active.map(cancel)) })
      },
    },
    {
      method: 'DELETE',
      path: '/workers/backups/:id',
      access: 'admin',
      doc: documentObject('Cancels a backup that is queued or running'),
      async handle(event) {
        const id = readId(event)
        const job = await backups.cancel(id, by(event))
        if (job === null) throw refuse(404, `no active backup for id '${id}'`)
        return json(job)
      },
    },
  ]
}

function storedRoutes({ by }: Site, { backups }: BackupRouteDependencies): readonly Route[] {
  return [
    {
      method: 'POST',
      path: '/workers/backups/:id/restore',
      access: 'admin',
      doc: documentObject('Restores a stored backup', 409),
      handle: async (event) => json(await backups.restore(readId(event), by(event))),
    },
    {
      method: 'GET',
      path: '/ui/backups/:id/download',
      access: 'admin',
      // A known length shows whether all of it came.
      isCompressed: false,
      doc: {
        summary: 'A file of a stored backup',
        query: { file: 'inventory.json (the default) or state.db' },
        answers: { 200: { type: 'string', contentMediaType: 'application/octet-stream' } },
      },
      async handle(event) {
        const id = readId(event)
        const name = event.url.searchParams.get('file') ?? 'inventory.json'
        const found = await backups.download(id, name)
        if (found === null) throw notFound(id)
        return send(found, name === 'inventory.json' ? `${id}.json` : `${id}-${name}`)
      },
    },
    {
      method: 'DELETE',
      path: '/ui/backups/:id',
      access: 'admin',
      doc: documentObject('Removes a stored backup'),
      async handle(event) {
        const id = readId(event)
        const removed = await backups.remove(id, by(event))
        if (removed === null) throw notFound(id)
        const { machines, bytes } = toWire(removed)
        return json({ backup_id: id, machines, bytes_on_disk: bytes })
      },
    },
  ]
}

const notFound = (id: string) => refuse(404, `backup not found: '${id}'`)

/** The 404 does not repeat what is no id. */
function readId(event: H3Event): string {
  const id = getRouterParam(event, 'id', { decode: true }) ?? ''
  if (!isBackupId(id)) throw refuse(404, 'no backup has such an id')
  return id
}

const toWire = ({ backup_id, manifest, bytes }: StoredBackup) => ({
  backup_id,
  bytes,
  kind: manifest === null ? 'inventory' : 'full',
  machines: manifest?.machines ?? null,
  created_at: manifest?.created_at ?? null,
  release: manifest?.release ?? null,
  trigger: manifest?.trigger ?? null,
})

/** Checks each piece before it is sent; a bad one breaks the connection off. */
function send({ bytes, pieces }: BackupDownload, name: string): Answer {
  return answer(
    200,
    {
      'content-type': name.endsWith('.json') ? 'application/json' : 'application/octet-stream',
      'content-disposition': `attachment; filename="${name}"`,
      ...(bytes === null ? {} : { 'content-length': String(bytes) }),
    },
    streamOf(pieces),
  )
}
