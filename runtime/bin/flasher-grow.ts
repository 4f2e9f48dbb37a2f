/** Starts `flasher-grow`, which grows and mounts the images partition of the live system's stick. */
import process from 'node:process'
import { openImagesOfHost } from '../live/images.ts'

process.exitCode = await openImagesOfHost(process.env)
