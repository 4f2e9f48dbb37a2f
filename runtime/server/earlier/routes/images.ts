/** Earlier line: `GET /images`, and the images themselves, read and uploaded. */
import type { H3Event } from 'h3'
import { renderImagerList } from '#appliance/imager-list.ts'
import { listForImager } from '#engine/catalog/rules/imager-images.ts'
import type { ImageShelf } from '#engine/image/image-shelf.ts'
import type { ImageRow } from '#engine/image/rules/image.ts'
import { peerOf } from '#kit/web/answers/caller.ts'
import { receiveUpload } from '#fleet/boot/boot-folder.ts'
import { openServed } from '#kit/host/served-files.ts'
import { requireSpace } from '#fleet/state/disk-space.ts'
import { etagOf } from '#kit/web/answers/rules/etag.ts'
import { json, taggedJson, type Answer } from '#kit/web/answers/answers.ts'
import { readFileName } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { answerFile } from '#kit/web/answers/file-answer.ts'
import type { Site } from '#server/routes/site.ts'
import { documentObject, type Route } from '#kit/web/answers/route.ts'
import type { Machine } from '../rules/machine.ts'

const BYTES = { type: 'string', contentMediaType: 'application/octet-stream' }

/** Left free beside an upload of known length. */
const SPARE_BYTES = 16 * 2 ** 20

interface ImageRouteDependencies {
  readonly shelf: ImageShelf
  /** For Raspberry Pi Imager. */
  readonly icon: string
}

export function imageRoutes(
  site: Site<Machine>,
  { shelf, icon }: ImageRouteDependencies,
): readonly Route[] {
  async function send(event: H3Event): Promise<Answer> {
    const name = readFileName(event)
    const file = await openServed(shelf.root, name)
    if (file === null) throw refuse(404, 'no such image')
    return (await answerFile(event, name, file)).answer
  }

  return [
    {
      method: 'GET',
      path: '/images',
      access: 'open',
      doc: {
        summary: 'The images in the image folder',
        answers: { 200: { type: 'array', items: { $ref: '#/components/schemas/ImageEntry' } } },
      },
      async handle(event) {
        const body = JSON.stringify(await shelf.list())
        return taggedJson(event, { body, etag: etagOf(body) })
      },
    },
    {
      method: 'GET',
      path: '/imager.json',
      access: 'open',
      isCompressed: true,
      doc: documentObject('The same images as a custom repository of Raspberry Pi Imager'),
      async handle(event) {
        const { baseUrl } = peerOf(event)
        const images = listForImager((await shelf.list()).map((row) => toOffered(row, baseUrl)))
        const body = JSON.stringify(renderImagerList(images, `${baseUrl}${icon}`))
        return taggedJson(event, { body, etag: etagOf(body) })
      },
    },
    {
      method: 'GET',
      path: '/images/:name',
      access: 'open',
      doc: {
        summary: 'An image; ranges and ETags as in RFC 9110',
        answers: { 200: BYTES },
        refuses: [416],
      },
      handle: send,
    },
    {
      method: 'PUT',
      path: '/images/:name',
      access: 'admin',
      takes: 'bytes',
      most: () => site.settings().uploadMostBytes,
      doc: {
        summary: 'Uploads an image; one of that name is replaced once all of it is there',
        body: BYTES,
        refuses: [409],
        isNeverMissing: true,
        answers: {
          200: {
            type: 'object',
            properties: {
              name: { type: 'string' },
              size_bytes: { type: 'integer' },
              path: { type: 'string' },
            },
          },
        },
      },
      handle: (event, bytes) => takeUpload(site, shelf, event, bytes),
    },
  ]
}

/** This line knows no digests: the Imager then compares nothing. */
const toOffered = ({ name, format, size_bytes }: ImageRow, baseUrl: string) => ({
  name,
  description: null,
  format,
  arch: null,
  sizeBytes: size_bytes,
  rawSizeBytes: null,
  rawSha256: null,
  sha256: null,
  addedAt: null,
  url: `${baseUrl}/images/${encodeURIComponent(name)}`,
})

async function takeUpload(
  site: Site<Machine>,
  shelf: ImageShelf,
  event: H3Event,
  bytes: AsyncIterable<Uint8Array>,
): Promise<Answer> {
  const name = readFileName(event)
  if (/\p{Bidi_Control}/u.test(name)) {
    throw refuse(400, 'the name must not contain characters that reverse text')
  }
  const expected = Number(event.req.headers.get('content-length') ?? 0)
  if (expected > 0) await requireSpace(shelf.root, expected + SPARE_BYTES, name)
  const size_bytes = await receiveUpload({
    dir: shelf.root,
    name,
    bytes,
    maxBytes: site.settings().uploadMostBytes,
    sha256: null,
  })
  shelf.forget()
  site.changes.announce({ topic: 'catalog' })
  const details = { name, size_bytes }
  const note = { kind: 'images.uploaded', summary: `${name} was uploaded`, details }
  const subject = { subject_id: name, ...site.by(event) }
  await site.recordAll([{ ...note, subject_kind: 'catalog' }], subject)
  return json({ ...details, path: `${shelf.root}/${name}` })
}
