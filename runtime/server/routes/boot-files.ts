/** Serves the live environment's files: with ranges, never recompressed, replaced as a whole. */
import type { H3Event } from 'h3'
import { renderAutoexec } from '#fleet/boot/rules/boot-script.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { openServed, type ServedFile } from '#kit/host/served-files.ts'
import { json, text, type Answer } from '#kit/web/answers/answers.ts'
import { readFileName } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { answerFile } from '#kit/web/answers/file-answer.ts'
import type { Site } from './site.ts'
import type { Route } from '#kit/web/answers/route.ts'

/** Most names with a metric label of their own; uploads can have any name. */
const MAX_LABELS = 50
export const AUTOEXEC = 'autoexec.ipxe'

export function bootFileRoutes(site: Site): readonly Route[] {
  const { bootFiles, metrics } = site

  const labelled = new Set<string>()
  function labelOf(name: string): string {
    if (labelled.size < MAX_LABELS) labelled.add(name)
    return labelled.has(name) ? name : 'other'
  }

  async function send(event: H3Event): Promise<Answer> {
    const name = readFileName(event)
    if (name === AUTOEXEC) {
      const { baseUrl } = site.contact(event)
      return text(renderAutoexec(baseUrl, site.otherServers?.(baseUrl)))
    }
    const file = (await openServed(bootFiles.dir, name)) ?? (await openAlias(name))
    if (file === null) throw refuse(404, 'no such boot file')
    // GRUB and UEFI ask HEAD first: the machine is seen when it fetches the file.
    if (event.req.method !== 'HEAD') await see(site, event, name)
    const { answer, bytes } = await answerFile(event, name, file)
    metrics.count('flasher_boot_bytes_total', { name: labelOf(name) }, bytes ?? 0)
    return answer
  }

  /** `ipxe.efi`, which firmware asks for: a release's newest iPXE if there is no such file. */
  async function openAlias(alias: string): Promise<ServedFile | null> {
    const name = (await bootFiles.alias?.(alias)) ?? null
    return name === null ? null : openServed(bootFiles.dir, name)
  }

  return [
    {
      method: 'GET',
      path: '/boot/:name',
      access: 'open',
      doc: {
        summary: 'A file of the live system; ranges and ETags as in RFC 9110',
        query: { mac: 'The machine that fetches it' },
        answers: { 200: { type: 'string', contentMediaType: 'application/octet-stream' } },
        refuses: [416],
      },
      handle: send,
    },
    {
      method: 'PUT',
      path: '/boot/:name',
      access: 'admin',
      reach: 'shared',
      takes: 'bytes',
      most: () => site.settings().uploadMostBytes,
      doc: {
        summary: 'Uploads a file of the live environment',
        body: { type: 'string', contentMediaType: 'application/octet-stream' },
        refuses: [409],
        isNeverMissing: true,
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

const isLiveFile = (name: string): boolean => /\.(?:vmlinuz|initrd)$/.test(name)

async function see(site: Site, event: H3Event, name: string): Promise<void> {
  const mac = parseMac(event.url.searchParams.get('mac') ?? '')
  if (!mac.ok) return
  const { fleet, line, machines, changes } = site
  const contact = site.contact(event)
  const stamp = name.endsWith('.vmlinuz') ? 'kernel_at' : 'initrd_at'
  if (isLiveFile(name)) site.stamps?.note(mac.value, stamp)
  try {
    const by = { actor: 'pxe-client', ip: contact.ip } as const
    const decided = await fleet.update(
      mac.value,
      by,
      (before) => before && line.transition(before, { kind: 'boot-file', name }, contact),
    )
    if (decided === null) return
    machines.see(mac.value, { at: contact.now, ip: contact.ip ?? '' })
    changes.announce({ topic: 'machine', mac: mac.value })
  } catch (error) {
    // The file matters more than the note of it.
    site.log.error(`boot file ${name} for ${mac.value}: ${renderError(error)}`)
  }
}

async function takeUpload(
  site: Site,
  event: H3Event,
  bytes: AsyncIterable<Uint8Array>,
): Promise<Answer> {
  const name = readFileName(event)
  if (name === AUTOEXEC) throw refuse(400, `${AUTOEXEC} is made by the server`)
  const length = await site.bootFiles.save(name, bytes, site.settings().uploadMostBytes)
  site.changes.announce({ topic: 'fetch', key: name })
  const details = { name, size_bytes: length }
  const summary = `${name} was uploaded`
  await site.recordAll(
    [{ kind: 'netboot.artifacts.uploaded', subject_kind: 'netboot', summary, details }],
    { subject_id: name, ...site.by(event) },
  )
  return json(details)
}
