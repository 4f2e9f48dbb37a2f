/** What opens buckets: where the service is, and with which keys; and the address of one object there. */
export interface S3Access {
  /** `https://s3.example.org`, without a slash at its end; empty: that of AWS in the region. */
  readonly endpoint: string
  readonly region: string
  /** Null: objects are asked for anonymously. */
  readonly keys: S3Keys | null
}

interface S3Keys {
  readonly accessKey: string
  readonly secretKey: string
  /** What belongs to keys that are good for a while; null: these are not. */
  readonly sessionToken: string | null
}

interface S3Object {
  readonly bucket: string
  readonly key: string
}

/** The region that services of other makers expect, and the first one of AWS. */
const USUAL_REGION = 'us-east-1'

type S3Variables = Readonly<Record<string, string | undefined>>

/** Reads the variables by which the tools of AWS know a service and its keys. */
export function accessOf(env: S3Variables): S3Access {
  const accessKey = env['AWS_ACCESS_KEY_ID'] ?? ''
  const secretKey = env['AWS_SECRET_ACCESS_KEY'] ?? ''
  const sessionToken = env['AWS_SESSION_TOKEN'] || null
  const endpoint = env['AWS_ENDPOINT_URL_S3'] || env['AWS_ENDPOINT_URL'] || ''
  return {
    endpoint: endpoint.replace(/\/+$/, ''),
    region: env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || USUAL_REGION,
    keys: accessKey === '' || secretKey === '' ? null : { accessKey, secretKey, sessionToken },
  }
}

export interface S3Settings {
  readonly endpoint: string
  readonly region: string
  readonly access_key: string
  readonly secret_key: string
  readonly secret_key_file: string
}

/** Returns what opens buckets: what is set, else what `env` says. Keys of two places are never mixed. */
export function chooseAccess(
  settings: Omit<S3Settings, 'secret_key_file'>,
  env: S3Variables,
): S3Access {
  const others = accessOf(env)
  const { access_key: accessKey, secret_key: secretKey } = settings
  return {
    endpoint: settings.endpoint || others.endpoint,
    region: settings.region || others.region,
    keys: accessKey === '' ? others.keys : { accessKey, secretKey, sessionToken: null },
  }
}

/**
 * Tells whether requests can be made below an endpoint: variables are not checked as settings are. One
 * with a password would be in every signed address.
 */
export const isEndpoint = (text: string): boolean =>
  text === '' || (/^https?:\/\/[^\s\\?#@]+$/i.test(text) && URL.canParse(text))

export function parseS3Source(source: string): S3Object {
  const [, bucket = '', key = ''] = /^s3:\/\/([^/]*)\/(.*)$/s.exec(source) ?? []
  return { bucket, key }
}

/** Renders the address of an object with its bucket as the first part of the path, unsigned. */
export function objectUrl({ endpoint, region }: S3Access, { bucket, key }: S3Object): string {
  const base = endpoint === '' ? `https://s3.${region}.amazonaws.com` : endpoint
  return `${base}/${bucket}/${key.split('/').map(encodePart).join('/')}`
}

/** As signatures are computed: all but letters, digits and `-._~`. */
const encodePart = (part: string) =>
  encodeURIComponent(part).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )
