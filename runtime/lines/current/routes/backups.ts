/** `/workers/backups`: made, listed, cancelled, downloaded, removed, restored. */
import { getRouterParam, HTTPResponse, type H3Event } from 'h3'
import { isBackupId } from '../../../core/state/backup.ts'
import type { BackupManifest } from '../../../core/state/backup-manifest.ts'
import type { BackupAsker } from '../../../services/backup/backup-events.ts'
import type { Backups, Download } from '../../../services/backup/backups.ts'
import type { StoredBackup } from '../../../services/backup/backup-store.ts'
import { json, streamOf } from '../../../web/http/answers.ts'
import { refuse } from '../../../web/http/faults.ts'
import type { Site } from '../../../web/fleet/site.ts'
import type { Route } from '../../../web/http/route.ts'
import { checked, renderSchema } from '../../../web/http/checked.ts'
import { BackupRequestSchema } from '../rules/backup-request.ts'
import type { Machine } from '../rules/machine.ts'

/** `place`: what the answer says of where backups go; no path of this host. */
interface BackupRouteDependencies {
  readonly backups: Backups
  place(): string
}

const ANSWER = { type: 'object' } as const

export function backupRoutes(
  { by }: Pick<Site<Machine>, 'by'>,
  { backups, place }: BackupRouteDependencies,
): readonly Route[] {
  async function list() {
    return {
      backups_root: place(),
      max_parallel: 1,
      backups: backups.jobs(),
      stored: (await backups.list()).map(toWire),
      restoring: backups.restoring(),
    }
  }

  async function start(event: H3Event, body: unknown) {
    const { trigger } = checked(BackupRequestSchema, body ?? {})
    return json(await backups.start(trigger, askerOf(event)), 202)
  }

  async function cancel(event: H3Event) {
    const id = readId(event)
    const job = await backups.cancel(id, askerOf(event))
    if (job === null) throw refuse(404, `no active backup for id '${id}'`)
    return job
  }

  /** Without an id: whatever is queued or running. */
  async function cancelAll(event: H3Event) {
    const active = backups
      .jobs()
      .filter(({ status }) => status === 'queued' || status === 'running')
    const asker = askerOf(event)
    return {
      cancelled: await Promise.all(active.map((job) => backups.cancel(job.backup_id, asker))),
    }
  }

  async function download(event: H3Event) {
    const id = readId(event)
    const name = event.url.searchParams.get('file') ?? 'inventory.json'
    const found = await backups.download(id, name)
    if (found === null) throw notFound(id)
    return send(found, name === 'inventory.json' ? `${id}.json` : `${id}-${name}`)
  }

  async function remove(event: H3Event) {
    const id = readId(event)
    const removed = await backups.remove(id, askerOf(event))
    if (removed === null) throw notFound(id)
    const { machines, bytes } = toWire(removed)
    return { backup_id: id, machines, bytes_on_disk: bytes }
  }

  const restore = (event: H3Event) => backups.restore(readId(event), askerOf(event))

  const askerOf = (event: H3Event): BackupAsker => by(event)

  return [
    {
      method: 'GET',
      path: '/workers/backups',
      access: 'read',
      doc: {
        summary: 'Backups of this process, and all that can be restored',
        answers: { 200: ANSWER },
      },
      handle: list,
    },
    {
      method: 'POST',
      path: '/workers/backups',
      access: 'admin',
      takes: 'json',
      doc: {
        summary: 'Begins a backup',
        body: renderSchema(BackupRequestSchema, 'input'),
        answers: { 202: ANSWER },
      },
      handle: start,
    },
    {
      method: 'DELETE',
      path: '/workers/backups',
      access: 'admin',
      doc: { summary: 'Cancels every backup that is queued or running', answers: { 200: ANSWER } },
      handle: cancelAll,
    },
    {
      method: 'DELETE',
      path: '/workers/backups/:id',
      access: 'admin',
      doc: { summary: 'Cancels a backup that is queued or running', answers: { 200: ANSWER } },
      handle: cancel,
    },
    {
      method: 'POST',
      path: '/workers/backups/:id/restore',
      access: 'admin',
      doc: { summary: 'Puts a stored backup in force', answers: { 200: ANSWER } },
      handle: restore,
    },
    {
      method: 'GET',
      path: '/ui/backups/:id/download',
      access: 'admin',
      doc: {
        summary: 'A file of a stored backup',
        query: { file: 'inventory.json (unless said) or state.db' },
      },
      handle: download,
    },
    {
      method: 'DELETE',
      path: '/ui/backups/:id',
      access: 'admin',
      doc: { summary: 'Removes a stored backup', answers: { 200: ANSWER } },
      handle: remove,
    },
  ]
}

const notFound = (id: string) => refuse(404, `backup not found: '${id}'`)

/** The id, or a 404 that repeats nothing which is none. */
function readId(event: H3Event): string {
  const id = getRouterParam(event, 'id', { decode: true }) ?? ''
  if (!isBackupId(id)) throw refuse(404, 'no backup has such an id')
  return id
}

function toWire({ backup_id, manifest, bytes }: StoredBackup) {
  return { backup_id, bytes, ...about(manifest) }
}

const about = (manifest: BackupManifest | null) => ({
  kind: manifest === null ? 'inventory' : 'full',
  machines: manifest?.machines ?? null,
  created_at: manifest?.created_at ?? null,
  release: manifest?.release ?? null,
  trigger: manifest?.trigger ?? null,
})

/** Each piece is checked before it is sent; one that is wrong breaks the connection off. */
function send({ bytes, pieces }: Download, name: string) {
  return new HTTPResponse(streamOf(pieces), {
    headers: {
      'content-type': name.endsWith('.json') ? 'application/json' : 'application/octet-stream',
      'content-disposition': `attachment; filename="${name}"`,
      ...(bytes === null ? {} : { 'content-length': String(bytes) }),
    },
  })
}
