/** Where a cache keeps its own files: in a folder of its name in the folder of images. */
export const DATA_FOLDER = '.cache'
