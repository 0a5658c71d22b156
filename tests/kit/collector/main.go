// An OpenTelemetry Collector with the parts that the configurations of this project name.
package main

import (
	"log"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/bearertokenauthextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/healthcheckextension"
	"github.com/open-telemetry/opentelemetry-collector-contrib/extension/storage/filestorage"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/filelogreceiver"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/exporter/nopexporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func factories() (made otelcol.Factories, err error) {
	made.Telemetry = otelconftelemetry.NewFactory()
	if made.Extensions, err = otelcol.MakeFactoryMap(
		bearertokenauthextension.NewFactory(), filestorage.NewFactory(), healthcheckextension.NewFactory(),
	); err != nil {
		return made, err
	}
	if made.Receivers, err = otelcol.MakeFactoryMap(
		filelogreceiver.NewFactory(), otlpreceiver.NewFactory(),
	); err != nil {
		return made, err
	}
	if made.Processors, err = otelcol.MakeFactoryMap(
		batchprocessor.NewFactory(), memorylimiterprocessor.NewFactory(),
	); err != nil {
		return made, err
	}
	made.Exporters, err = otelcol.MakeFactoryMap(
		debugexporter.NewFactory(), fileexporter.NewFactory(), nopexporter.NewFactory(),
		otlpexporter.NewFactory(), otlphttpexporter.NewFactory(),
	)
	return made, err
}

func main() {
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Description: "OpenTelemetry Collector", Version: "0"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{
				ProviderFactories: []confmap.ProviderFactory{
					envprovider.NewFactory(), fileprovider.NewFactory(), yamlprovider.NewFactory(),
				},
				DefaultScheme: "env",
			},
		},
	})
	if err := command.Execute(); err != nil {
		log.Fatal(err)
	}
}
