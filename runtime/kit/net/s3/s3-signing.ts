/** Signs the address of an object, so that whoever has it may read that object for a while. */
import { objectUrl, parseS3Source, type S3Access } from './rules/s3-access.ts'

interface SigningOptions {
  /** The time from which it is valid. */
  readonly at: Date
  /** How long it is valid; services allow at most seven days. */
  readonly seconds: number
}

/** Returns the address for `GET`; without keys it is the plain one. */
export async function presign(
  access: S3Access,
  source: string,
  { at, seconds }: SigningOptions,
): Promise<string> {
  const { region, keys } = access
  const url = new URL(objectUrl(access, parseS3Source(source)))
  if (keys === null) return url.href
  const { AwsV4Signer } = await import('aws4fetch')
  url.searchParams.set('X-Amz-Expires', String(seconds))
  const signer = new AwsV4Signer({
    method: 'GET',
    url: url.href,
    service: 's3',
    region,
    accessKeyId: keys.accessKey,
    secretAccessKey: keys.secretKey,
    ...(keys.sessionToken === null ? {} : { sessionToken: keys.sessionToken }),
    signQuery: true,
    datetime: at.toISOString().replace(/[:-]|\.\d{3}/g, ''),
  })
  const signed = await signer.sign()
  return signed.url.href
}
