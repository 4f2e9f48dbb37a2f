console.log(process.version, process.execPath)
