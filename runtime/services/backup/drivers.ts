/** Loads unstorage drivers by name when they are needed, and reads their values as bytes. */
import type { Driver, Storage } from 'unstorage'
import { isRecord } from '../../core/foundation/shape.ts'
import { Fault } from '../../core/foundation/fault.ts'

/** Nothing of a driver is loaded before it is named by the configuration. */
export async function loadDriver(
  name: string,
  options: Readonly<Record<string, unknown>>,
): Promise<Driver> {
  const unknown = (cause?: unknown) =>
    new Fault('input-invalid', `backup.driver: ${name} cannot be used`, {
      hint: 'Name a driver of unstorage (fs, s3, …); some need a package of their own beside this one.',
      cause,
    })
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) throw unknown()
  try {
    const module: unknown = await import(`unstorage/drivers/${name}`)
    const driver = isModule(module) ? module.default(options) : null
    if (isDriver(driver)) return driver
  } catch (cause) {
    throw unknown(cause)
  }
  throw unknown()
}

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
