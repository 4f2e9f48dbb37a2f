/** Loads unstorage drivers by name when they are needed, and reads their values as bytes. */
import type { Driver, Storage } from 'unstorage'
import { isRecord } from '#kit/foundation/shape.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { AwsClient } from 'aws4fetch'

/** A driver is loaded only if the configuration names it. */
export async function loadDriver(
  name: string,
  options: Readonly<Record<string, unknown>>,
): Promise<Driver> {
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) throw unusable(name)
  try {
    const module: unknown = await import(`unstorage/drivers/${name}`)
    const driver = isModule(module) ? module.default(options) : null
    if (isDriver(driver)) return name === 's3' ? listsAll(driver, options) : driver
  } catch (cause) {
    throw unusable(name, cause)
  }
  throw unusable(name)
}

const listsAll = (driver: Driver, options: Readonly<Record<string, unknown>>): Driver => ({
  ...driver,
  getKeys: () => listS3Keys(options),
})

function unusable(name: string, cause?: unknown): Fault {
  const wanted = cause instanceof Error ? MISSING.exec(cause.message)?.[1] : undefined
  return wanted === undefined
    ? new Fault('input-invalid', `backup.driver: ${name} cannot be used`, {
        hint: 'fs and s3 are part of this program; other drivers of unstorage need packages of their own.',
        cause,
      })
    : new Fault('input-invalid', `backup.driver: ${name} needs the package ${wanted}`, {
        hint: `Install it where this program is installed (npm install ${wanted}), or use fs or s3, which need no other package.`,
        cause,
      })
}

const MISSING = /Cannot find package '([@\w./-]{1,100})'/

const isModule = (value: unknown): value is { readonly default: (options: unknown) => unknown } =>
  isRecord(value) && typeof value['default'] === 'function'

const isDriver = (value: unknown): value is Driver =>
  isRecord(value) && 'getItem' in value && 'getKeys' in value

/** Drivers give buffers, arrays or text. */
export async function readValue(storage: Storage, key: string): Promise<Buffer | null> {
  const value: unknown = await storage.getItemRaw(key)
  if (value === null || value === undefined) return null
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.length)
  if (value instanceof ArrayBuffer) return Buffer.from(value)
  return Buffer.from(typeof value === 'string' ? value : JSON.stringify(value))
}

/** A million objects. */
const MAX_PAGES = 1000

async function listS3Keys(options: Readonly<Record<string, unknown>>): Promise<string[]> {
  const text = (name: string) => {
    const value = options[name]
    if (typeof value === 'string' && value !== '') return value
    throw new Fault('input-invalid', `backup.driver_options: ${name} is missing`, {
      hint: 'S3 needs endpoint, bucket, region, accessKeyId and secretAccessKey.',
    })
  }
  const client = new AwsClient({
    service: 's3',
    accessKeyId: text('accessKeyId'),
    secretAccessKey: text('secretAccessKey'),
    region: text('region'),
  })
  const bucket = `${text('endpoint').replace(/\/$/, '')}/${text('bucket')}`
  const keys: string[] = []
  let token = ''
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const more = token === '' ? '' : `&continuation-token=${encodeURIComponent(token)}`
    const response = await client.fetch(`${bucket}?list-type=2${more}`)
    const body = await response.text()
    if (!response.ok || !body.includes('<ListBucketResult')) {
      throw new Fault('upstream-failed', `${bucket} cannot be listed: HTTP ${response.status}`, {
        hint: /<Message>([^<]{1,200})/.exec(body)?.[1],
      })
    }
    keys.push(...[...body.matchAll(/<Key>([^<]+)<\/Key>/g)].map(([, key = '']) => decode(key)))
    token = decode(/<NextContinuationToken>([^<]+)</.exec(body)?.[1] ?? '')
    if (token === '') break
  }
  return keys
}

const decode = (xml: string): string =>
  xml.replace(/&(amp|lt|gt|quot|apos);/g, (_, name: string) => ENTITIES.get(name) ?? '')

const ENTITIES: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
])
