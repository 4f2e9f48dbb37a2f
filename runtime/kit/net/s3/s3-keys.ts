/** Reads what opens buckets: from the settings, from the file that they name, else from the environment. */
import { readFile } from 'node:fs/promises'
import { Fault } from '#kit/foundation/fault.ts'
import type { Environment } from '#kit/host/shell.ts'
import { chooseAccess, type S3Access, type S3Settings } from './rules/s3-access.ts'

/**
 * Rejects with a Fault `input-missing` where the file cannot be read, and `input-invalid` where
 * there is an access key without a secret one.
 */
export async function readS3Access(settings: S3Settings, env: Environment): Promise<S3Access> {
  const { access_key: accessKey, secret_key_file: path } = settings
  if (accessKey === '') return chooseAccess(settings, env)
  const secretKey = path === '' ? settings.secret_key : await readFirstLine(path)
  if (secretKey !== '') return chooseAccess({ ...settings, secret_key: secretKey }, env)
  throw new Fault('input-invalid', 's3.access_key has no secret key', {
    hint: 'Set s3.secret_key, or s3.secret_key_file to a file whose first line it is.',
  })
}

async function readFirstLine(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new Fault('input-missing', `${path} (s3.secret_key_file) cannot be read`, { cause })
  })
  return text.split('\n')[0]?.trim() ?? ''
}
