/** Lists all objects of an S3 bucket: unstorage's driver takes the first 1,000 for all of them. */
import { AwsClient } from 'aws4fetch'
import { Fault } from '#kit/foundation/fault.ts'

/** A million objects. */
const MAX_PAGES = 1000

export async function listS3Keys(options: Readonly<Record<string, unknown>>): Promise<string[]> {
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
