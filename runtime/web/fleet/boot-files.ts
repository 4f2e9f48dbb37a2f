/** The live environment's files: served in parts, never recompressed, and replaced as a whole. */
import { getRouterParam, type H3Event } from 'h3'
import { renderAutoexec } from '../../core/boot/bootstrap.ts'
import {
  decideFileAnswer,
  type Conditions,
  type FileAnswer,
  type Version,
} from '../../core/net/byte-range.ts'
import { renderError } from '../../core/foundation/fault.ts'
import { parseMac } from '../../core/machine/mac.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import { openServed, type ServedFile } from '../../services/host/served-files.ts'
import { json, text } from '../http/answers.ts'
import { refuse } from '../http/faults.ts'
import type { Site } from './site.ts'
import type { Route } from '../http/route.ts'

/** Names of files that are counted each by itself: some sets, and what else is at hand. */
const MAX_LABELS = 50
const AUTOEXEC = 'autoexec.ipxe'
/** Long enough for any name that a file system takes. */
const MAX_BYTES = 255

export function bootFileRoutes<M extends MachineBase>(site: Site<M>): readonly Route[] {
  const { bootFiles, metrics } = site

  const labelled = new Set<string>()
  /** Whoever uploads can name files as they like, a metric's label cannot. */
  function labelOf(name: string): string {
    if (labelled.size < MAX_LABELS) labelled.add(name)
    return labelled.has(name) ? name : 'other'
  }

  async function send(event: H3Event): Promise<unknown> {
    const name = readName(event)
    if (name === AUTOEXEC) return text(renderAutoexec(site.contact(event).baseUrl))
    const file = (await openServed(bootFiles.dir, name)) ?? (await openAlias(name))
    if (file === null) throw refuse(404, 'no such boot file')
    // GRUB and UEFI ask HEAD first: the machine is seen when it fetches the file.
    if (event.req.method !== 'HEAD') await see(site, event, name)
    const { body, bytes } = await answerFile(event, name, file)
    metrics.count('flasher_boot_bytes_total', { name: labelOf(name) }, bytes)
    return body
  }

  /** `ipxe.efi`, which firmware asks for, is the newest iPXE of a release where there is no such file. */
  async function openAlias(alias: string): Promise<ServedFile | null> {
    const name = bootFiles.alias?.(alias) ?? null
    return name === null ? null : openServed(bootFiles.dir, name)
  }

  return [
    {
      method: 'GET',
      path: '/boot/:name',
      access: 'open',
      doc: {
        summary: 'A file of the live environment; ranges and ETags as in RFC 9110',
        query: { mac: 'The machine that fetches it' },
        answers: { 200: { type: 'string', contentMediaType: 'application/octet-stream' } },
      },
      handle: send,
    },
    {
      method: 'PUT',
      path: '/boot/:name',
      access: 'admin',
      takes: 'bytes',
      most: () => site.settings().uploadMostBytes,
      doc: {
        summary: 'Uploads a file of the live environment',
        body: { type: 'string', contentMediaType: 'application/octet-stream' },
        answers: {
          200: {
            type: 'object',
            properties: { name: { type: 'string' }, size_bytes: { type: 'integer' } },
          },
        },
      },
      handle: (event, bytes) => takeUpload(site, event, bytes),
    },
  ]
}

/** A machine that names itself in the request is on its way into the live system. */
async function see<M extends MachineBase>(
  site: Site<M>,
  event: H3Event,
  name: string,
): Promise<void> {
  const mac = parseMac(event.url.searchParams.get('mac') ?? '')
  if (!mac.ok) return
  const { fleet, line, machines, feed } = site
  const contact = site.contact(event)
  try {
    const by = { actor: 'pxe-client', ip: contact.ip } as const
    const decided = await fleet.update(
      mac.value,
      by,
      (before) => before && line.transition(before, { kind: 'boot-file', name }, contact),
    )
    if (decided === null) return
    machines.see(mac.value, { at: contact.now, ip: contact.ip ?? '' })
    feed.announce({ topic: 'machine', mac: mac.value })
  } catch (error) {
    // The file matters more than the note of it.
    site.log.error(`boot file ${name} for ${mac.value}: ${renderError(error)}`)
  }
}

async function takeUpload<M extends MachineBase>(
  site: Site<M>,
  event: H3Event,
  bytes: AsyncIterable<Uint8Array>,
): Promise<unknown> {
  const name = readName(event)
  if (name === AUTOEXEC) throw refuse(400, `${AUTOEXEC} is made by the server`)
  const length = await site.bootFiles.save(name, bytes, site.settings().uploadMostBytes)
  site.feed.announce({ topic: 'fetch', key: name })
  const details = { name, size_bytes: length }
  const summary = `${name} was uploaded`
  await site.noteAll(
    [{ kind: 'netboot.artifacts.uploaded', subject_kind: 'netboot', summary, details }],
    { subject_id: name, ...site.by(event) },
  )
  return json(details)
}

/** A bare file name: no way to another folder, no hidden file, nothing that a header could choke on. */
function readName(event: H3Event): string {
  const name = getRouterParam(event, 'name', { decode: true }) ?? ''
  const isBare =
    /^[^./\\%\p{Cc}\p{Cs}][^/\\%\p{Cc}\p{Cs}]*$/u.test(name) && Buffer.byteLength(name) <= MAX_BYTES
  if (!isBare) {
    throw refuse(400, 'not a file name', { hint: 'A bare name, without a dot at its start.' })
  }
  return name
}

/** Stages status and headers; what it returns is the body. */
async function answerFile(event: H3Event, name: string, file: ServedFile) {
  const version = versionOf(file)
  const isHead = event.req.method === 'HEAD'
  const answer = decideFileAnswer(readConditions(event), version)
  stage(event, answer.status, {
    'accept-ranges': 'bytes',
    etag: version.etag,
    'last-modified': version.lastModified,
    // Saved, never shown: an uploaded page would run with the rights of ours.
    'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(name)}`,
    'content-type': 'application/octet-stream',
    'cache-control': 'no-cache',
  })
  const part = partOf(answer, file.sizeBytes)
  if (answer.status === 206) {
    stage(event, 206, { 'content-range': `bytes ${answer.from}-${answer.to}/${file.sizeBytes}` })
  }
  if (answer.status === 416) stage(event, 416, { 'content-range': `bytes */${file.sizeBytes}` })
  if (part !== null) stage(event, answer.status, { 'content-length': String(part.length) })
  if (part === null || part.length === 0 || isHead) {
    file.close().catch(() => {})
    return { bytes: 0, body: isHead ? null : '' }
  }
  return { bytes: part.length, body: await file.read(part.from, part.from + part.length - 1) }
}

/** Null: no part of the file is sent. */
function partOf(answer: FileAnswer, size: number) {
  if (answer.status === 200) return { from: 0, length: size }
  return answer.status === 206 ? { from: answer.from, length: answer.to - answer.from + 1 } : null
}

const versionOf = ({ sizeBytes, modifiedAt }: ServedFile): Version => ({
  sizeBytes,
  etag: `"${sizeBytes.toString(36)}-${Math.trunc(modifiedAt * 1000).toString(36)}"`,
  lastModified: new Date(Math.floor(modifiedAt / 1000) * 1000).toUTCString(),
})

const readConditions = ({ req }: H3Event): Conditions => ({
  range: req.method === 'HEAD' ? null : req.headers.get('range'),
  ifRange: req.headers.get('if-range'),
  ifNoneMatch: req.headers.get('if-none-match'),
  ifModifiedSince: req.headers.get('if-modified-since'),
})

function stage(event: H3Event, status: number, headers: Readonly<Record<string, string>>): void {
  event.res.status = status
  for (const [name, value] of Object.entries(headers)) event.res.headers.set(name, value)
}
