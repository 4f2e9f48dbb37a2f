/** Starts `flasher-grow`: the images partition of the live system's stick grows and is mounted. */
import process from 'node:process'
import { openImagesOfHost } from '../live/images.ts'

process.exitCode = await openImagesOfHost(process.env)
