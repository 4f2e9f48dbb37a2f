/** Starts `flasher-grow`, which grows and mounts the images partition of the live system's stick. Called by flasher-grow.mjs. */
import process from 'node:process'
import { openImagesOfHost } from '#flasher/live-system/images.ts'

export async function start(): Promise<void> {
  process.exitCode = await openImagesOfHost(process.env)
}
